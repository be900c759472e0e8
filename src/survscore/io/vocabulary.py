"""What people call the columns of tables with follow-up: the words by which `survscore formats` guesses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from survscore._utils.dates import Unit

Role = Literal["id", "start", "event_date", "end", "last_seen", "cutoff", "time", "censoring_time", "event", "reason",
               "dropout"]  # fmt: skip
DATED: tuple[Role, ...] = ("start", "event_date", "end", "last_seen", "cutoff")
TIMED: tuple[Role, ...] = ("time", "censoring_time")

# Words that only say that something is a date: "signup_date" and "signed_up_at" are both about signing up.
DATE_WORDS = frozenset(
    ("date", "dates", "dt", "dat", "datum", "day", "ts", "timestamp", "at", "on", "of", "the", "epoch", "utc", "ms")
)
LONE_LETTERS = ("t", "e")  # of time and event, as in lifelines; other letters may be anything
DATE_ENDINGS = re.compile(r"^date(?=...)|(?<=...)(date|datum|dt|dat)$")


@dataclass(frozen=True)
class Words:
    """How columns of one role are called.

    Attributes
    ----------
    exact : frozenset of str
        Whole names, in lower case, with blanks between words; for dates, without `DATE_WORDS`.
    parts : frozenset of str
        Words that may be a part of the name, which say less.
    """

    exact: frozenset[str]
    parts: frozenset[str]


def _words(exact: str, parts: str = "") -> Words:
    return Words(frozenset(phrase.replace("_", " ") for phrase in exact.split()), frozenset(parts.split()))


VOCABULARY: dict[Role, Words] = {
    "id": _words(
        """
        id uid uuid guid pid sid key msno ptid patno subject subjid subject_id usubjid patient patient_id customer
        customer_id client client_id user user_id member member_id account account_id participant participant_id
        record_id study_id subscription_id case_id person_id employee_id kunde kundennummer kunden_nr kundennr
        patientennummer
        """,
        """
        id nr no number nummer
        """,
    ),
    "start": _words(
        """
        start started begin began beginning signup sign_up signed_up registration registered register enrol enroll
        enrolled enrolment enrollment entry entered admission admitted admit diagnosis diagnosed dx baseline join
        joined joining activation activated created creation inclusion included randomisation randomization randomised
        randomized rando opened open since customer_since subscribed subscription_start contract_start hire hired
        onboarded onboarding purchase surgery operation accept first_seen beginn vertragsbeginn eintritt anmeldung
        aufnahme kunde_seit accession
        """,
        """
        start begin signup registration enrol enrolment enrollment entry admission diagnosis join joined activation
        inclusion randomisation randomization since beginn eintritt hire accession
        """,
    ),
    "event_date": _words(
        """
        event death died dod deceased cancel cancelled canceled cancellation churn churned failure failed relapse
        relapsed recurrence progression unsubscribed unsubscribe kündigung kuendigung gekündigt gekuendigt tod
        sterbedatum todesdatum verstorben deactivated deactivation default defaulted deleted lapsed lapse
        """,
        """
        death died deceased cancel cancelled canceled cancellation churn churned failure relapse recurrence
        progression kündigung kuendigung tod
        """,
    ),
    "end": _words(
        """
        end ended ending stop stopped exit exited close closed termination terminated until finish finished last left
        leave discharge discharged end_followup end_follow_up end_of_follow_up ende vertragsende austritt
        subscription_end contract_end to
        """,
        """
        end stop exit closed termination terminated ende austritt discharge expire expiry expiration
        """,
    ),
    "last_seen": _words(
        """
        last_seen lastseen last_fu lastfu fu lfu last_follow_up last_followup lastfollowup last_contact
        last_known_alive last_visit lastvisit last_active last_activity last_login followup follow_up last_observed
        letzter_kontakt last_alive dropout drop_out dropped_out lost ltfu withdrawn withdrawal
        """,
        """
        lastfu
        """,
    ),
    "cutoff": _words(
        """
        cutoff cut_off data_cutoff data_cut_off data_end data_lock export exported extract extracted extraction
        snapshot as_of asof report reporting freeze observation_end study_end end_of_study end_study pulled downloaded
        stichtag exportdatum administrative_censoring
        """,
        """
        cutoff snapshot exported export extract extraction stichtag
        """,
    ),
    "time": _words(
        """
        time times t duration durations tenure futime fu_time ftime survtime surv_time survival_time survivaltime
        os_time time_to_event timetoevent tte event_time eventtime time_os followup_time follow_up_time followup
        follow_up fu lifetime length_of_stay los obs_time observed_time time_obs exposure_time days weeks months years
        week os_days os_months pfs_months dfs_months rfs_time stime dauer laufzeit vertragsdauer time_days time_months
        time_years duration_days duration_months tenure_days tenure_months tenure_years fu_days fu_months fu_years
        followup_days followup_months rfstime follow_up_days follow_up_months survival_days survival_months
        days_to_event tenure_in_months
        """,
        """
        tenure duration followup survtime time
        """,
    ),
    "censoring_time": _words(
        """
        censoring_time censor_time cens_time censtime c c_star cstar max_time max_duration max_followup max_follow_up
        max_tenure potential_followup potential_follow_up administrative_censoring_time admin_censoring_time
        time_to_cutoff days_to_cutoff months_to_cutoff days_available observable_time possible_time horizon_end
        """,
        """
        censoring potential
        """,
    ),
    "event": _words(
        """
        event events e d d01 delta status fustat stat churn churned churn_flag is_churn is_churned has_churned
        attrition died death dead deceased death_event fail failed failure observed event_observed event_occurred
        event_flag event_indicator vital_status os_status os_event os arrest relapse relapsed recurrence cancelled
        canceled cancel exited indicator status_event default defaulted had_event label_event gekündigt gekuendigt
        verstorben tod ereignis abgang left censor censored cens is_censored censoring active is_active alive is_alive
        still_active retained aktiv customer_status patient_status account_status subscription_status
        """,
        """
        event churn churned died death status censored
        """,
    ),
    "dropout": _words("", ""),
    "reason": _words(
        """
        reason end_reason exit_reason why cause cause_of_death event_type eventtype etype end_type outcome disposition
        termination_reason churn_reason cancellation_reason leaving_reason grund endgrund kündigungsgrund
        kuendigungsgrund
        """,
        """
        reason cause grund
        """,
    ),
}

# Flags whose 1 means that there was no event, or may mean that.
CENSORED_WORDS = frozenset(("censor", "censored", "cens", "censoring"))
DROPOUT_WORDS = frozenset(("dropout", "dropouts", "dropped", "lost", "ltfu", "withdrawn", "withdrawal", "withdrew"))
ACTIVE_WORDS = frozenset(("active", "alive", "retained", "aktiv", "surviving", "renewed"))
# Being active is no contact with those who study somebody: who was not active lately is not lost to them.
ACTIVITY_WORDS = frozenset(("login", "active", "activity", "visit", "lastvisit", "order", "purchase"))
# What reasons say, by the beginning of a word.
EVENT_REASONS = ("churn", "cancel", "death", "died", "dead", "deceas", "relaps", "recur", "progress", "fail", "event",
                 "terminat", "attrit", "default", "left", "kündig", "kuendig", "verstorb", "gestorben")  # fmt: skip
OTHER_REASONS = ("alive", "active", "living", "censor", "ongoing", "lost", "end of", "admin", "withdr", "moved", "none",
                 "no ", "not ", "open", "current", "stayed", "joined", "still", "aktiv", "lebt", "study end",
                 "complete")  # fmt: skip
# In names of columns of predictions.
SURVIVAL_WORDS = frozenset(("s", "surv", "survival", "sf", "retention", "retained", "alive", "active", "eventfree"))
EVENT_WORDS = frozenset(("risk", "event", "churn", "death", "died", "dead", "cif", "f", "cdf", "incidence", "cancel",
                         "mortality", "fail", "failure", "relapse", "hazard", "default"))  # fmt: skip
PROBABILITY_WORDS = SURVIVAL_WORDS | EVENT_WORDS | frozenset(
    ("p", "prob", "proba", "probability", "pred", "prediction", "predicted", "yhat", "score", "pct", "percent", "t",
     "time", "horizon", "at", "h")
)  # fmt: skip
MODEL_WORDS = frozenset(
    ("model", "cox", "coxph", "cph", "net", "nnet", "nn", "rsf", "forest", "rf", "xgb", "xgboost", "lgbm", "lightgbm",
     "gbm", "gbst", "logistic", "logit", "aft", "weibull", "deepsurv", "deephit", "mtlr", "pycox", "km", "kaplan",
     "meier", "ridge", "lasso", "new", "old", "champion", "challenger", "baseline", "ensemble", "v")
)  # fmt: skip
# Columns of tables of curves, with rows for times, that are no individuals.
CURVE_WORDS = frozenset(("lower", "upper", "se", "std", "ci", "estimate", "n", "risk", "events", "atrisk", "km"))
# Tables of customers, where a status of 1 may well be an active one.
BUSINESS_WORDS = frozenset(("customer", "account", "user", "client", "member", "subscription", "subscriber", "tenure",
                            "contract", "plan", "employee", "kunde", "signup"))  # fmt: skip
UNIT_WORDS: dict[str, Unit] = {
    "day": "D", "days": "D", "tag": "D", "tage": "D", "week": "W", "weeks": "W", "wk": "W", "wks": "W", "woche": "W",
    "wochen": "W", "month": "M", "months": "M", "mo": "M", "mon": "M", "mth": "M", "mths": "M", "monat": "M",
    "monate": "M", "year": "Y", "years": "Y", "yr": "Y", "yrs": "Y", "jahr": "Y", "jahre": "Y", "hour": "h",
    "hours": "h", "hr": "h", "hrs": "h", "minute": "min", "minutes": "min", "min": "min", "second": "s",
    "seconds": "s", "sec": "s",
}  # fmt: skip
UNIT_LETTERS: dict[str, Unit] = {"d": "D", "w": "W", "m": "M", "y": "Y", "h": "h"}


def tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case: ``"CustomerID"`` and ``"customer_id"`` have the same two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.sub(r"[\W_]+", " ", parted.lower()).split())


def strength(name: str, role: Role) -> int:
    """Return how well a name fits a role: 2, a usual name of it; 1, such a word is part of the name; 0, neither."""
    words = tokens(name)
    vocabulary = VOCABULARY[role]
    phrases = {" ".join(words), "".join(words)}
    if role in DATED:
        about = [DATE_ENDINGS.sub("", word) or word for word in words if word not in DATE_WORDS]
        phrases |= {" ".join(about)}
        words = tuple(about)
    if role == "event":
        phrases |= {" ".join(word for word in words if word not in ("is", "has", "flag", "indicator", "yn", "bin"))}
    if phrases & vocabulary.exact:
        lone = len(name) == 1 and name.lower() not in LONE_LETTERS
        return 1 if lone else 2
    return 1 if vocabulary.parts & set(words) else 0


def unit_in(name: str) -> Unit | None:
    """Return the unit of time that a name speaks of, if it is one only."""
    units = {UNIT_WORDS[word] for word in tokens(name) if word in UNIT_WORDS}
    return units.pop() if len(units) == 1 else None
