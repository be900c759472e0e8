# Reference values for censoring-weighted Brier scores, computed with R.
#
# Usage, from the folder of this file:
#
#     Rscript make_r_reference.R
#
# It simulates three small data sets from a fixed seed, hands the same
# predictions to riskRegression::Score and pec::pec, and writes the data and
# the results to r_reference.json.  Every number is printed with the fewest
# digits that read back as the same double, so nothing is lost in the file.
#
# Needs: riskRegression, pec, prodlim, survival, pROC (Debian:
# r-cran-riskregression, r-cran-pec, r-cran-proc).  No JSON package is needed.
#
# Conventions of the quantities in the file
# -----------------------------------------
# * model_a, model_b: predicted probabilities of SURVIVAL beyond each entry of
#   `times` (rows: subjects, columns: times).  Score() wants risks, so it gets
#   one minus these; pec() gets them as they are, with a column of ones for
#   time zero in front.
# * G is the Kaplan-Meier curve of the censoring times in which, at a tied
#   time, events leave the risk set before the censorings:
#       G(t) = prod over s <= t of 1 - c(s) / (Y(s) - d(s)),
#   c and d counting censorings and events at s, Y all who are still under
#   observation just before s.  That is what prodlim(reverse = TRUE) computes.
#   survfit() on the flipped indicator uses 1 - c(s) / Y(s) instead; it is
#   recorded too, to document that the two differ under ties.
# * Left limits G(T_i-) are the curve at the last distinct observed time
#   strictly before T_i (one if there is none).
# * Contrasts are "first minus second": b_minus_a is Brier(b) - Brier(a).
# * competing: two causes, event 1 and 2; incidence_a and incidence_b are the
#   predicted cumulative incidences of cause 1 at each of `times` (of cause 2
#   under cause_2).  Score() weights any event by 1/G(T-), those event-free at
#   t by 1/G(t), and divides by n; its null model is the Aalen-Johansen
#   estimate; controls of its AUC are the event-free and those with an event
#   of the other cause.
# * brier_cox: G from a Cox model of the censoring with one covariate, the
#   logarithm of model a's cumulative hazard at time 3; G enters as
#   exp(-cumulative hazard), from the left at T_i, and the sum is divided by n.
# * delong: pROC's AUC at each time among those whose status is known then, all
#   with the same weight; variances by DeLong's method, and the paired test.

suppressPackageStartupMessages({
  library(survival)
  library(prodlim)
  library(riskRegression)
  library(pec)
  library(data.table)
  library(pROC)
})

seed <- 20240517
n <- 200

# ---------------------------------------------------------------------------
# Data
# ---------------------------------------------------------------------------

# Event times are Weibull given two covariates.  Both prediction models are
# written down rather than fitted: model a knows the true distribution up to a
# little shrinkage, model b sees one covariate through noise and has the wrong
# baseline, so a must come out ahead.
shape <- 1.4
scale <- 3
beta <- c(0.9, -0.7)

covariates <- function() {
  data.frame(x1 = rnorm(n), x2 = rbinom(n, 1, 0.5), noise = rnorm(n))
}

event_times <- function(x) {
  risk <- exp(beta[1] * x$x1 + beta[2] * x$x2)
  scale * (rexp(n) / risk)^(1 / shape)
}

# The inputs are cut to six decimals before anything is computed from them,
# which keeps the file short and changes nothing else.
weibull_survival <- function(lp, times, shape, scale) {
  s <- exp(-outer(exp(lp), (times / scale)^shape))
  round(pmin(pmax(s, 1e-6), 1 - 1e-6), 6)
}

predict_a <- function(x, times) {
  weibull_survival(0.8 * (beta[1] * x$x1 + beta[2] * x$x2), times, shape, scale)
}

predict_b <- function(x, times) {
  weibull_survival(0.5 * (x$x1 + x$noise) - 0.2, times, 1, 3.6)
}

with_predictions <- function(data, x, times) {
  data$times <- times
  data$model_a <- predict_a(x, times)
  data$model_b <- predict_b(x, times)
  data
}

# Continuous, distinct times; independent exponential drop-out.
make_continuous <- function() {
  x <- covariates()
  t <- event_times(x)
  c <- rexp(n, rate = 0.18)
  time <- round(pmin(t, c), 6)
  stopifnot(!anyDuplicated(time), all(time > 0))
  with_predictions(list(time = time, event = as.integer(t <= c)), x,
                   c(0.25, 0.5, 1, 1.5, 2, 3, 4, 5))
}

# Times rounded up to halves.  The indicator is fixed before the rounding, so
# events and censorings share many of the times.  All evaluation times but one
# (2.25) are observed times.
make_ties <- function() {
  x <- covariates()
  t <- event_times(x)
  c <- rexp(n, rate = 0.18)
  time <- ceiling(2 * pmin(t, c)) / 2
  event <- as.integer(t <= c)
  times <- c(0.5, 1, 1.5, 2, 2.25, 3, 4, 5)
  shared <- intersect(time[event == 1], time[event == 0])
  stopifnot(all(setdiff(times, 2.25) %in% shared), !(2.25 %in% time))
  with_predictions(list(time = time, event = event), x, times)
}

# Administrative censoring only: staggered entry and one closing date give
# everybody a known censoring time, and nobody drops out before it.  Nothing is
# censored before time 1.5.
make_administrative <- function() {
  x <- covariates()
  t <- round(event_times(x), 6)
  c <- round(runif(n, 1.5, 6), 6)
  time <- pmin(t, c)
  stopifnot(!anyDuplicated(time), all(time > 0))
  with_predictions(
    list(time = time, event = as.integer(t <= c), censoring_time = c), x,
    c(0.5, 1, 1.75, 2.25, 3, 3.5, 4, 5))
}

# Two causes with constant hazards given the covariates, that of the first as
# above and the other way round for the second; independent drop-out.  With
# ties, times are rounded up to halves.
make_competing <- function(ties) {
  x <- covariates()
  h <- cbind(0.16 * exp(beta[1] * x$x1), 0.12 * exp(-0.5 * x$x1 + beta[2] * x$x2))
  t <- rexp(n) / rowSums(h)
  c <- rexp(n, rate = 0.14)
  cause <- ifelse(runif(n) < h[, 1] / rowSums(h), 1, 2)
  time <- if (ties) ceiling(2 * pmin(t, c)) / 2 else round(pmin(t, c), 6)
  stopifnot(ties || !anyDuplicated(time), all(time > 0))
  times <- c(0.5, 1, 1.5, 2.25, 3, 4, 5)
  incidence <- function(h, k) {
    f <- h[, k] / rowSums(h) * (1 - exp(-outer(rowSums(h), times)))
    round(pmin(pmax(f, 1e-6), 1 - 1e-6), 6)
  }
  wrong <- cbind(0.2 * exp(0.5 * (x$x1 + x$noise)), 0.1 * exp(-0.3 * x$x1))
  of <- function(k) {
    list(incidence_a = incidence(h, k), incidence_b = incidence(wrong, k))
  }
  list(time = time, event = as.integer(ifelse(t <= c, cause, 0)), times = times,
       cause_1 = of(1), cause_2 = of(2))
}

# ---------------------------------------------------------------------------
# References
# ---------------------------------------------------------------------------

# Score() sorts `times` but not the columns of the matrices that belong to them,
# so the evaluation times have to be increasing beforehand.
run_score <- function(d, conservative) {
  stopifnot(!is.unsorted(d$times, strictly = TRUE))
  Score(list(a = 1 - d$model_a, b = 1 - d$model_b),
        formula = Hist(time, event) ~ 1,
        data = data.table(time = d$time, event = d$event),
        times = d$times, metrics = "brier", summary = "ibs",
        cens.model = "km", se.fit = TRUE, conservative = conservative,
        null.model = TRUE, contrasts = TRUE)$Brier
}

# The predicted risks are the same; G depends on a covariate.
cox_results <- function(d) {
  z <- log(-log(d$model_a[, d$times == 3]))
  res <- Score(list(a = 1 - d$model_a, b = 1 - d$model_b),
               formula = Hist(time, event) ~ z,
               data = data.table(time = d$time, event = d$event, z = z),
               times = d$times, metrics = "brier", cens.model = "cox",
               se.fit = FALSE, null.model = FALSE, contrasts = FALSE)$Brier
  list(brier_cox = list(a = res$score[model == "a"]$Brier,
                        b = res$score[model == "b"]$Brier))
}

# Cases are those with the event by t, controls those event-free then.
auc_results <- function(d) {
  res <- Score(list(a = 1 - d$model_a, b = 1 - d$model_b),
               formula = Hist(time, event) ~ 1,
               data = data.table(time = d$time, event = d$event),
               times = d$times, metrics = "auc", cens.model = "km",
               se.fit = TRUE, conservative = FALSE, null.model = FALSE,
               contrasts = TRUE)$AUC
  auc <- function(name) {
    x <- res$score[model == name]
    list(estimate = x$AUC, se = x$se)
  }
  x <- res$contrasts[model == "b" & reference == "a"]
  stopifnot(isTRUE(all.equal(x$times, d$times)))
  list(auc_a = auc("a"), auc_b = auc("b"),
       auc_b_minus_a = list(delta = x$delta.AUC, se = x$se, p = x$p))
}

# Of one of several causes: Brier score and AUC, the null model, contrasts.
# With cause = 2, this version of Score() gives the same estimates, and Brier
# scores the same standard errors, as with cause = 1 of data in which 1 and 2
# change places, but the AUC another standard error: that of cause 1 is taken.
competing_results <- function(d, k) {
  swapped <- ifelse(d$event == 0, 0, ifelse(d$event == k, 1, 2))
  run <- function(conservative, event = swapped, cause = 1) {
    Score(list(a = d[[paste0("cause_", k)]]$incidence_a,
               b = d[[paste0("cause_", k)]]$incidence_b),
          formula = Hist(time, event) ~ 1,
          data = data.table(time = d$time, event = event),
          times = d$times, cause = cause, metrics = c("brier", "auc"),
          cens.model = "km", se.fit = TRUE, conservative = conservative,
          null.model = TRUE, contrasts = TRUE)
  }
  full <- run(FALSE)
  naive <- run(TRUE)
  as_is <- run(FALSE, d$event, k)
  stopifnot(isTRUE(all.equal(as_is$Brier$score, full$Brier$score)),
            isTRUE(all.equal(as_is$AUC$score$AUC, full$AUC$score$AUC)))
  of <- function(metric, name) {
    x <- full[[metric]]$score[model == name]
    y <- naive[[metric]]$score[model == name]
    stopifnot(isTRUE(all.equal(x$times, d$times)))
    list(estimate = x[[metric]], se = x$se, se_conservative = y$se)
  }
  against <- function(metric, first, second) {
    x <- full[[metric]]$contrasts[model == first & reference == second]
    list(delta = x[[paste0("delta.", metric)]], se = x$se, p = x$p)
  }
  aj <- prodlim(Hist(time, event) ~ 1,
                data = data.frame(time = d$time, event = d$event))
  list(brier_a = of("Brier", "a"), brier_b = of("Brier", "b"),
       brier_null = of("Brier", "Null model"),
       auc_a = of("AUC", "a"), auc_b = of("AUC", "b"),
       brier_b_minus_a = against("Brier", "b", "a"),
       brier_a_minus_null = against("Brier", "a", "Null model"),
       auc_b_minus_a = against("AUC", "b", "a"),
       null_incidence = as.numeric(predict(aj, times = d$times, cause = k,
                                           type = "cuminc")))
}

# Whoever is censored before a time, or at it, is left out there.
delong_results <- function(d) {
  one <- function(j) {
    t <- d$times[j]
    seen <- d$time > t | d$event == 1
    case <- as.integer(d$time <= t)[seen]
    curve <- function(model) {
      roc(case, 1 - model[seen, j], levels = c(0, 1), direction = "<",
          quiet = TRUE)
    }
    a <- curve(d$model_a)
    b <- curve(d$model_b)
    test <- roc.test(b, a, method = "delong", paired = TRUE)
    c(auc_a = as.numeric(auc(a)), var_a = var(a, method = "delong"),
      auc_b = as.numeric(auc(b)), var_b = var(b, method = "delong"),
      cov = cov(a, b, method = "delong"), z = unname(test$statistic),
      p = test$p.value)
  }
  found <- sapply(seq_along(d$times), one)
  lapply(split(found, factor(rownames(found), levels = rownames(found))),
         unname)
}

score_results <- function(d) {
  full <- run_score(d, conservative = FALSE)
  naive <- run_score(d, conservative = TRUE)
  same_times <- function(tab) {
    stopifnot(isTRUE(all.equal(tab$times, d$times)))
    tab
  }
  score <- function(res, name) same_times(res$score[model == name])
  contrast <- function(res, first, second) {
    same_times(res$contrasts[model == first & reference == second])
  }
  brier <- function(name) {
    list(estimate = score(full, name)$Brier,
         se = score(full, name)$se,
         se_conservative = score(naive, name)$se)
  }
  difference <- function(first, second) {
    x <- contrast(full, first, second)
    y <- contrast(naive, first, second)
    list(delta = x$delta.Brier, se = x$se, p = x$p,
         se_conservative = y$se, p_conservative = y$p)
  }
  list(brier_a = brier("a"), brier_b = brier("b"),
       brier_null = brier("Null model"),
       contrasts = list(b_minus_a = difference("b", "a"),
                        a_minus_null = difference("a", "Null model"),
                        b_minus_null = difference("b", "Null model")),
       # Score's own rule, on its own grid: the mean over (0, t] of the step
       # function that is 0 on [0, times[1]) and Brier(times[j]) on
       # [times[j], times[j+1]).  One value for each t in times.
       ibrier = list(a = score(full, "a")$IBS, b = score(full, "b")$IBS,
                     null = score(full, "Null model")$IBS))
}

pec_results <- function(d) {
  data <- data.frame(time = d$time, event = d$event)
  fit <- pec(list(a = cbind(1, d$model_a), b = cbind(1, d$model_b)),
             formula = Hist(time, event) ~ 1, data = data,
             times = d$times, start = 0, exact = FALSE,
             cens.model = "marginal", reference = TRUE, verbose = FALSE)
  stopifnot(isTRUE(all.equal(fit$time, c(0, d$times))))
  list(a = fit$AppErr$a[-1], b = fit$AppErr$b[-1],
       reference = fit$AppErr$Reference[-1])
}

# A right-continuous step function and its left limits; both start at one.
step_at <- function(x, jumps, values) c(1, values)[findInterval(x, jumps) + 1]
step_left <- function(x, jumps, values) {
  c(1, values)[findInterval(x, jumps, left.open = TRUE) + 1]
}

censoring_results <- function(d) {
  data <- data.frame(time = d$time, event = d$event)
  # prodlim keeps its subjects sorted by time, events first, and so does the
  # answer of ipcw(): sort beforehand and put the answer back in place.
  o <- order(data$time, -data$event)
  weights <- riskRegression::ipcw(Hist(time, event) ~ 1, data = data[o, ],
                                  method = "marginal", times = d$times,
                                  keep = NULL)
  left <- numeric(n)
  left[o] <- weights$IPCW.subject.times

  km <- prodlim(Hist(time, event) ~ 1, data = data, reverse = TRUE)
  stopifnot(identical(as.numeric(weights$IPCW.times),
                      step_at(d$times, km$time, km$surv)),
            identical(left, step_left(d$time, km$time, km$surv)))

  flipped <- survfit(Surv(time, 1 - event) ~ 1, data = data)
  list(prodlim_at_times = as.numeric(weights$IPCW.times),
       prodlim_left_at_time = left,
       survfit_at_times = step_at(d$times, flipped$time, flipped$surv),
       survfit_left_at_time = step_left(d$time, flipped$time, flipped$surv))
}

# Concordance of event times up to each of `times` with one minus the predicted
# survival at that time: Harrell's ("n": all pairs weigh the same) and Uno's
# ("n/G2": by the inverse square of G at the case's time, from the left).  Ties
# in risk count half; pairs with events at the same time are left out.  G is the
# one described at the top: at a tied time, events leave before censorings.
concordance_results <- function(d) {
  by_time <- function(survival, timewt) {
    sapply(seq_along(d$times), function(j) {
      if (!any(d$event == 1 & d$time <= d$times[j])) return(NA)
      x <- survival[, j]
      concordance(Surv(d$time, d$event) ~ x, timewt = timewt,
                  ymax = d$times[j])$concordance
    })
  }
  both <- function(survival) {
    list(harrell = by_time(survival, "n"), uno = by_time(survival, "n/G2"))
  }
  list(concordance_a = both(d$model_a), concordance_b = both(d$model_b))
}

null_survival <- function(d) {
  km <- prodlim(Hist(time, event) ~ 1,
                data = data.frame(time = d$time, event = d$event))
  step_at(d$times, km$time, km$surv)
}

references <- function(d) {
  c(score_results(d), auc_results(d),
    list(null_survival = null_survival(d), pec = pec_results(d),
         censoring_km = censoring_results(d), delong = delong_results(d)),
    concordance_results(d), cox_results(d))
}

# ---------------------------------------------------------------------------
# Check of the scores against their definition
# ---------------------------------------------------------------------------

censoring_curve <- function(d) {
  s <- sort(unique(d$time))
  lost <- sapply(s, function(u) sum(d$time == u & d$event == 0))
  left <- sapply(s, function(u) sum(d$time > u | (d$time == u & d$event == 0)))
  list(time = s, surv = cumprod(ifelse(lost > 0, 1 - lost / left, 1)))
}

brier_by_definition <- function(d, survival) {
  g <- censoring_curve(d)
  sapply(seq_along(d$times), function(j) {
    t <- d$times[j]
    total <- 0
    for (i in seq_len(n)) {
      if (d$time[i] > t) {
        total <- total + (1 - survival[i, j])^2 / step_at(t, g$time, g$surv)
      } else if (d$event[i] == 1) {
        total <- total + survival[i, j]^2 / step_left(d$time[i], g$time, g$surv)
      }
    }
    total / n
  })
}

check <- function(d, r) {
  close <- function(x, y) stopifnot(all(is.finite(x)), max(abs(x - y)) < 1e-12)
  null <- matrix(r$null_survival, n, length(d$times), byrow = TRUE)
  a <- brier_by_definition(d, d$model_a)
  b <- brier_by_definition(d, d$model_b)
  k <- brier_by_definition(d, null)
  close(r$brier_a$estimate, a)
  close(r$brier_b$estimate, b)
  close(r$brier_null$estimate, k)
  close(r$pec$a, a)
  close(r$pec$b, b)
  close(r$pec$reference, k)
  close(r$contrasts$b_minus_a$delta, b - a)
  close(r$contrasts$a_minus_null$delta, a - k)
  close(r$contrasts$b_minus_null$delta, b - k)
  g <- censoring_curve(d)
  close(r$censoring_km$prodlim_at_times, step_at(d$times, g$time, g$surv))
  close(r$censoring_km$prodlim_left_at_time, step_left(d$time, g$time, g$surv))
  stopifnot(all(r$censoring_km$prodlim_at_times > 0))
}

# ---------------------------------------------------------------------------
# A small JSON writer
# ---------------------------------------------------------------------------

# The shortest of 15, 16 and 17 significant digits that reads back unchanged.
number <- function(x) {
  out <- sprintf("%.15g", x)
  for (digits in c("%.16g", "%.17g")) {
    again <- is.finite(x) & as.numeric(out) != x
    out[which(again)] <- sprintf(digits, x[which(again)])
  }
  out[!is.finite(x)] <- "null"
  out
}

quoted <- function(x) paste0("\"", gsub("([\"\\\\])", "\\\\\\1", x), "\"")

# Lists become objects, vectors arrays on one line, matrices arrays of rows;
# a single string or number marked with I() is written without brackets.
json <- function(x, indent = "") {
  inner <- paste0(indent, "  ")
  if (is.list(x)) {
    items <- paste0(inner, quoted(names(x)), ": ",
                    vapply(x, json, "", indent = inner))
    return(paste0("{\n", paste(items, collapse = ",\n"), "\n", indent, "}"))
  }
  if (is.matrix(x)) {
    rows <- apply(x, 1, function(row) paste(number(row), collapse = ", "))
    return(paste0("[\n", paste0(inner, "[", rows, "]", collapse = ",\n"), "\n",
                  indent, "]"))
  }
  values <- if (is.character(x)) quoted(x) else number(x)
  if (inherits(x, "AsIs")) return(values)
  paste0("[", paste(values, collapse = ", "), "]")
}

# ---------------------------------------------------------------------------

set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion",
         sample.kind = "Rejection")

datasets <- list(continuous = make_continuous(), ties = make_ties(),
                 administrative = make_administrative())

for (name in names(datasets)) {
  d <- datasets[[name]]
  results <- references(d)
  check(d, results)
  datasets[[name]] <- c(d, list(results = results))
  cat(sprintf("%-15s %.0f %% censored, G at the last time %.3f\n", name,
              100 * mean(d$event == 0),
              tail(results$censoring_km$prodlim_at_times, 1)))
}

competing <- list(continuous = make_competing(FALSE),
                  ties = make_competing(TRUE))
for (name in names(competing)) {
  d <- competing[[name]]
  for (k in 1:2) {
    cause <- paste0("cause_", k)
    d[[cause]] <- c(d[[cause]], list(results = competing_results(d, k)))
  }
  competing[[name]] <- d
  cat(sprintf("%-15s %s events of cause 1 and 2\n", name,
              paste(sum(d$event == 1), sum(d$event == 2), sep = " and ")))
}

version_of <- function(package) I(as.character(packageVersion(package)))
packages <- c("riskRegression", "pec", "prodlim", "survival", "data.table",
              "pROC")

output <- list(
  meta = list(
    made_by = I("make_r_reference.R"),
    seed = I(seed),
    r_version = I(paste(R.version$major, R.version$minor, sep = ".")),
    packages = setNames(lapply(packages, version_of), packages),
    predictions = I("survival probabilities, subjects by times"),
    contrasts = I("first minus second"),
    missing = I("null")),
  datasets = datasets,
  competing = competing)

con <- file("r_reference.json", open = "wb")
writeLines(json(output), con)
close(con)
