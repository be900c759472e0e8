"""What people call the columns of tables with follow-up: the words by which `survscore formats` guesses."""

from __future__ import annotations

import re

from survscore._utils.dates import SECONDS, Unit

DATED = ("start", "event_date", "end", "last_seen", "cutoff")  # roles of columns of dates

# For each role whole names, in lower case, with _ for blanks; and "part": words that say less. Those of dates come
# without words that only say that something is a date. Below the roles are words for single questions.
TEXT = """
id: id uid uuid guid pid sid key msno ptid patno subject subjid usubjid patient customer client user member account
 participant record_id study_id subscription_id case_id person_id employee_id kunde kundennummer kunden_nr kundennr
 patientennummer
id part: id nr no number nummer
start: start started begin began beginning signup sign_up signed_up registration registered register enrol enroll
 enrolled enrolment enrollment entry entered admission admitted admit diagnosis diagnosed dx baseline join joined
 joining activation activated created creation inclusion included randomisation randomization randomised randomized
 rando opened open since customer_since subscribed subscription_start contract_start hire hired onboarded onboarding
 purchase surgery operation accept first_seen beginn vertragsbeginn eintritt anmeldung aufnahme kunde_seit accession
start part: start begin signup registration enrol enrolment enrollment entry admission diagnosis join joined activation
 inclusion randomisation randomization since beginn eintritt hire accession
event_date: event death died dod deceased cancel cancelled canceled cancellation churn churned failure failed relapse
 relapsed recurrence progression unsubscribed unsubscribe kündigung kuendigung gekündigt gekuendigt tod sterbedatum
 todesdatum verstorben deactivated deactivation default defaulted deleted lapsed lapse
event_date part: death died deceased cancel cancelled canceled cancellation churn churned failure relapse recurrence
 progression kündigung kuendigung tod
end: end ended ending stop stopped exit exited close closed termination terminated until finish finished last left
 leave discharge discharged end_followup end_follow_up end_of_follow_up ende vertragsende austritt subscription_end
 contract_end to
end part: end stop exit closed termination terminated ende austritt discharge expire expiry expiration
last_seen: last_seen lastseen last_fu lastfu fu lfu last_follow_up last_followup lastfollowup last_contact
 last_known_alive last_visit lastvisit last_active last_activity last_login followup follow_up last_observed
 letzter_kontakt last_alive dropout drop_out dropped_out lost ltfu withdrawn withdrawal
last_seen part: lastfu
cutoff: cutoff cut_off data_cutoff data_cut_off data_end data_lock export exported extract extracted extraction
 snapshot as_of asof report reporting freeze observation_end study_end end_of_study end_study pulled downloaded
 stichtag exportdatum administrative_censoring
cutoff part: cutoff snapshot exported export extract extraction stichtag
time: time times t duration durations tenure futime fu_time ftime survtime surv_time survival_time survivaltime os_time
 time_to_event timetoevent tte event_time eventtime time_os followup_time follow_up_time followup follow_up fu lifetime
 length_of_stay los obs_time observed_time time_obs exposure_time days weeks months years week rfs_time stime dauer
 laufzeit vertragsdauer rfstime days_to_event os pfs dfs
time part: tenure duration followup survtime time
censoring_time: censoring_time censor_time cens_time censtime c c_star cstar max_time max_duration max_followup
 max_follow_up max_tenure potential_followup potential_follow_up administrative_censoring_time admin_censoring_time
 time_to_cutoff days_to_cutoff months_to_cutoff days_available observable_time possible_time horizon_end
censoring_time part: censoring potential
event: event events e d d01 delta status fustat stat churn churned churn_flag is_churn is_churned has_churned attrition
 died death dead deceased death_event fail failed failure observed event_observed event_occurred event_flag
 event_indicator vital_status os_status os_event os arrest relapse relapsed recurrence cancelled canceled cancel exited
 indicator status_event default defaulted had_event label_event gekündigt gekuendigt verstorben tod ereignis abgang
 left censor censored cens is_censored censoring active is_active alive is_alive still_active retained aktiv
 customer_status patient_status account_status subscription_status
event part: event churned churn died death status censored
reason: reason end_reason exit_reason why cause cause_of_death event_type eventtype etype end_type outcome disposition
 termination_reason churn_reason cancellation_reason leaving_reason grund endgrund kündigungsgrund kuendigungsgrund
reason part: reason cause grund
date words: date dates dt dat datum day ts timestamp at on of the epoch utc ms
censored words: censor censored cens censoring
dropout words: dropout dropouts dropped lost ltfu withdrawn withdrawal withdrew
active words: active alive retained aktiv surviving renewed
activity words: login active activity visit lastvisit order purchase
business words: customer account user client member subscription subscriber tenure contract plan employee kunde signup
survival words: s surv survival sf retention retained alive active eventfree
event words: risk event churn death died dead cif f cdf incidence cancel mortality fail failure relapse hazard default
probability words: p prob proba probability pred prediction predicted yhat score pct percent t time horizon at h
model words: model cox coxph cph net nnet nn rsf forest rf xgb xgboost lgbm lightgbm gbm gbst logistic logit aft
 weibull deepsurv deephit mtlr pycox km kaplan meier ridge lasso new old champion challenger baseline ensemble v
curve words: lower upper se std ci estimate n risk events atrisk km
unit D: day days tag tage
unit W: week weeks wk wks woche wochen
unit M: month months mo mon mth mths monat monate
unit Y: year years yr yrs jahr jahre
unit h: hour hours hr hrs
unit min: minute minutes min
unit s: second seconds sec
event reasons: churn cancel death died dead deceas relaps recur progress fail event terminat attrit default left kündig
 kuendig verstorb gestorben
other reasons: alive active living censor ongoing lost end_of admin withdr moved none no_ not_ open current stayed
 joined still aktiv lebt study_end complete
"""
WORDS: dict[str, frozenset[str]] = {
    name: frozenset(word.replace("_", " ") for word in words.split())
    for name, _, words in (entry.partition(":") for entry in re.split(r"\n(?=\w)", TEXT.strip()))
}
UNIT_WORDS = {word: unit for unit in SECONDS for word in WORDS[f"unit {unit}"]}
UNIT_LETTERS: dict[str, Unit] = {"d": "D", "w": "W", "m": "M", "y": "Y", "h": "h"}
DATE_ENDINGS = re.compile(r"^date(?=...)|(?<=...)(date|datum|dt|dat)$")


def tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case: ``"CustomerID"`` and ``"customer_id"`` have the same two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.sub(r"[\W_]+", " ", parted.lower()).split())


def speaks_of(name: str, what: str) -> bool:
    """Whether a name has a word of a list: ``"censored"``, ``"active"``."""
    return bool({*tokens(name), "".join(tokens(name))} & WORDS[f"{what} words"])


def strength(name: str, role: str) -> int:
    """Return how well a name fits a role: 2, a usual name of it; 1, such a word is part of the name; 0, neither."""
    words = tokens(name)
    phrases = {" ".join(words), "".join(words)}
    if role in DATED:
        words = tuple(DATE_ENDINGS.sub("", word) or word for word in words if word not in WORDS["date words"])
    if role == "time":
        phrases |= {" ".join(word for word in words if word not in UNIT_WORDS and word != "in")}
    if role == "id" and words[-1:] in (("id",), ("nr",), ("number",)):
        phrases |= set(words[:-1])
    if role == "event":
        phrases |= {" ".join(word for word in words if word not in ("is", "has", "flag", "indicator", "yn", "bin"))}
    if ({" ".join(words)} | phrases) & WORDS.get(role, frozenset()):
        return 1 if len(name) == 1 and name.lower() not in ("t", "e") else 2  # other letters may be anything
    return 1 if WORDS.get(f"{role} part", frozenset()) & set(words) else 0


def unit_in(name: str) -> Unit | None:
    """Return the unit of time that a name speaks of, if it is one only."""
    units = {UNIT_WORDS[word] for word in tokens(name) if word in UNIT_WORDS}
    return units.pop() if len(units) == 1 else None
