# What editors and type checkers see; `__init__.py` imports the same names when they are first asked for.
from survscore import (
    adapters as adapters,
    censoring as censoring,
    checks as checks,
    datasets as datasets,
    io as io,
    metrics as metrics,
    models as models,
    paper as paper,
    plots as plots,
    reports as reports,
    scale as scale,
    simulate as simulate,
    weighting as weighting,
)
from survscore._config import config as config
from survscore._validation import (
    DelayedEntryWarning as DelayedEntryWarning,
    DeviceMemoryError as DeviceMemoryError,
    FewFollowedWarning as FewFollowedWarning,
    FewGroupsWarning as FewGroupsWarning,
    InputError as InputError,
    InterpolationWarning as InterpolationWarning,
    UndefinedScoreWarning as UndefinedScoreWarning,
    UnequalWeightsWarning as UnequalWeightsWarning,
    UnfitError as UnfitError,
)
from survscore._version import __version__ as __version__
from survscore.analysis.backtest import backtest as backtest
from survscore.analysis.backtest_results import Backtest as Backtest
from survscore.analysis.calibration import Calibration as Calibration, calibration as calibration
from survscore.analysis.compare import compare as compare
from survscore.analysis.cross_validation import CrossValidation as CrossValidation, cross_validate as cross_validate
from survscore.analysis.decision_curves import DecisionCurve as DecisionCurve, decision_curve as decision_curve
from survscore.analysis.diagnose import Diagnosis as Diagnosis, diagnose as diagnose
from survscore.analysis.distribution_calibration import (
    DistributionCalibration as DistributionCalibration,
    distribution_calibration as distribution_calibration,
)
from survscore.analysis.landmark_curves import LandmarkCurves as LandmarkCurves
from survscore.analysis.landmarks import landmark_table as landmark_table
from survscore.analysis.pooling import (
    PooledEstimate as PooledEstimate,
    across_datasets as across_datasets,
    pool as pool,
)
from survscore.analysis.populations import at_horizon as at_horizon, counted_population as counted_population
from survscore.analysis.score_tables import score_table as score_table
from survscore.analysis.selection import EventKFold as EventKFold, make_scorer as make_scorer
from survscore.analysis.streaming import StreamingScore as StreamingScore
from survscore.censoring.distributions import (
    CensoringCurves as CensoringCurves,
    CensoringDistribution as CensoringDistribution,
    CensoringFunction as CensoringFunction,
    KaplanMeierCensoring as KaplanMeierCensoring,
    KnownCensoring as KnownCensoring,
)
from survscore.curves import SurvivalCurves as SurvivalCurves
from survscore.engine.blocks import CurveBatches as CurveBatches
from survscore.incidence import IncidenceCurves as IncidenceCurves
from survscore.metrics import (
    AUC as AUC,
    CRPS as CRPS,
    E50 as E50,
    E90 as E90,
    ICI as ICI,
    Brier as Brier,
    CalibrationInTheLarge as CalibrationInTheLarge,
    CalibrationSlope as CalibrationSlope,
    Concordance as Concordance,
    FollowUpMetric as FollowUpMetric,
    Log as Log,
    LogScore as LogScore,
    Loss as Loss,
    Metric as Metric,
    Miscalibration as Miscalibration,
    NetBenefit as NetBenefit,
    ObservedExpected as ObservedExpected,
    SampleMetric as SampleMetric,
)
from survscore.outcomes import Outcomes as Outcomes
from survscore.reports.page import Report as Report, report as report
from survscore.results.comparison import Comparison as Comparison, IntegratedComparison as IntegratedComparison
from survscore.results.score_table import AcrossDatasets as AcrossDatasets
from survscore.results.score_table import LandmarkTable as LandmarkTable
from survscore.results.score_table import PooledTable as PooledTable
from survscore.results.recommendation import Recommendation as Recommendation
from survscore.results.score_curve import (
    Bounds as Bounds,
    IntegratedScore as IntegratedScore,
    ScoreCurve as ScoreCurve,
    ScoreTerms as ScoreTerms,
)
from survscore.results.score_table import ScoreTable as ScoreTable
from survscore.results.segments import (
    IntegratedSegments as IntegratedSegments,
    SegmentedComparison as SegmentedComparison,
)
from survscore.results.sensitivity import Sensitivity as Sensitivity
from survscore.scale.evaluating import evaluate as evaluate
from survscore.scale.files import BadFileError as BadFileError
from survscore.scale.memory import MemoryLimitError as MemoryLimitError
from survscore.scale.specification import BinsNeededError as BinsNeededError
from survscore.scores import (
    auc as auc,
    brier_score as brier_score,
    log_loss as log_loss,
    score_all as score_all,
    score_terms as score_terms,
)
from survscore.weighting import (
    IPCW as IPCW,
    Administrative as Administrative,
    Projected as Projected,
    Uncensored as Uncensored,
    Weighting as Weighting,
    weightings_that_fit as weightings_that_fit,
)
