"""The rules of the KKBox study, one customer at a time, in plain Python: slow, and as they are written down."""

import datetime as dt
import math

LAST = dt.date(2017, 1, 29)
AGES = dt.date(2017, 3, 1)


def date(number):
    return dt.datetime.strptime(str(number), "%Y%m%d").date()


def half_up(x):
    """Round as SQL does: halves away from zero."""
    return math.copysign(math.floor(abs(x) + 0.5), x)


def prepare(transactions, members, labels):
    """Return (rows, reasons): one dict per spell that is kept, and how often each reason dropped one.

    Transactions, members and labels are lists of dicts, in the order of their files.
    """
    by_customer = {}
    for place, row in enumerate(transactions):
        made, expires = date(row["transaction_date"]), date(row["membership_expire_date"])
        by_customer.setdefault(row["msno"], []).append({**row, "place": place, "made": made, "expires": expires})
    members = {row["msno"]: row for row in members}
    labels = {row["msno"]: row["is_churn"] for row in labels}
    rows, reasons = [], {}
    for msno, own in by_customer.items():
        own.sort(key=lambda t: (t["made"], t["place"]))
        for this, following in zip(own, [*own[1:], None], strict=True):
            this["gap"] = following is not None and (following["made"] - this["expires"]).days > 30
        valid = [t for t in own if t["expires"] >= t["made"]]
        spells = [[]]
        for t in valid:
            spells[-1].append(t)
            if t["gap"]:
                spells.append([])
        if not spells[-1]:
            spells.pop()  # the churn by gap was the last valid transaction
        for number, spell in enumerate(spells):
            row, reason = one_spell(number, spell, spells, labels.get(msno), members.get(msno))
            if reason:
                reasons[reason] = reasons.get(reason, 0) + 1
            else:
                rows.append({"msno": msno, **row})
    return rows, reasons


def one_spell(number, spell, spells, label, member):
    last, start = spell[-1], spell[0]["made"]
    is_last = spell is spells[-1]
    gap = last["gap"]
    final = is_last and last["made"] <= LAST and last["expires"] <= LAST
    labelled = is_last and label == 1
    churned = gap or final or labelled
    duration, end = (last["expires"] - start).days, (LAST - start).days
    event = churned
    if duration > end:
        duration, event = end, False
    if not event:
        duration = end
    if labelled and not gap and not final and (last["expires"] - start).days > end:
        return None, "churn known only from the labels, after C*"
    if gap and final and labelled:
        return None, "churn by gap, final and by label at once"
    if end <= 0:
        return None, "starts on or after the last churn date"
    if duration <= 0:
        return None, "no duration"
    since = None
    if member is not None and member["registration_init_time"] is not None:
        since = (start - date(member["registration_init_time"])).days
        if since < 0:
            return None, "starts before the registration"
    first = [t for t in spell if t["made"] == start][-1]
    between = (start - spells[number - 1][-1]["expires"]).days if number else 0
    age = -1
    if member is not None and member["bd"] is not None:
        age = int(min(100, max(0, half_up(member["bd"] - (AGES - start).days / 365.25))))
    return {
        "time": float(duration),
        "event": event,
        "censoring_time": float(end),
        "start_date": start,
        "n_prev_churns": number,
        "log_days_between_subs": math.log(between + 1),
        "log_days_since_reg_init": math.log((-1 if since is None else since) + 2),
        "log_payment_plan_days": math.log(first["payment_plan_days"] + 1),
        "log_plan_list_price": math.log(first["plan_list_price"] + 1),
        "log_actual_amount_paid": math.log(first["actual_amount_paid"] + 1),
        "is_auto_renew": first["is_auto_renew"],
        "is_cancel": first["is_cancel"],
        "age_at_start": age,
        "strange_age": int(not 0 < age < 100),
        "nan_days_since_reg_init": int(since is None),
        "no_prev_churns": int(number == 0),
        "city": "missing" if member is None or member["city"] is None else str(member["city"]),
        "gender": "missing" if member is None or not member["gender"] else member["gender"],
        "registered_via": "missing"
        if member is None or member["registered_via"] is None
        else str(member["registered_via"]),
        "payment_method_id": str(first["payment_method_id"]),
    }, None
