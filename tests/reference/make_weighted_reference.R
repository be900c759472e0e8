# Reference values with delayed entry and sample weights, computed with R.
#
# Usage, from the folder of this file:
#
#     Rscript make_weighted_reference.R
#
# It simulates a small data set with ties from a fixed seed, and writes it with
# the results to weighted_reference.json, in as many digits as doubles have.
#
# Needs: survival, survey (Debian: r-cran-survival, r-cran-survey).
#
# * kaplan_meier: survfit at `times`, with case weights, with delayed entry
#   (start-stop), and with both; aalen_johansen: the same of the two causes.
# * concordance: survival::concordance of the risk, with case weights, up to each
#   of `times`, timewt "n" (Harrell's) and "n/G2" (Uno's); since_entry is of
#   time - entry.
# * survey: of those followed to each of `times`, whose status is known then,
#   the weighted mean loss (svymean), observed/expected (svyratio) and the
#   calibration slope (svyglm), with standard errors by individual and by
#   cluster.

suppressPackageStartupMessages({
  library(survival)
  library(survey)
})

set.seed(20261119)
n <- 160
x <- rnorm(n)
# quarters, whose differences are not rounded
entry <- round(runif(n, 0, 8)) / 4 * rbinom(n, 1, 0.7)
event_time <- entry + ceiling(rexp(n, 0.2 * exp(0.8 * x)) * 4) / 4
end <- entry + ceiling(runif(n, 1, 8) * 4) / 4
time <- pmin(event_time, end)
event <- as.integer(event_time <= end)
cause <- event * (1 + rbinom(n, 1, 0.4))
weights <- round(rgamma(n, 2, 1) + 0.1, 3)
cluster <- sample(1:40, n, replace = TRUE)
times <- c(1, 2, 3, 4.5)
survival_since_entry <- round(exp(-outer(0.2 * exp(0.6 * x), times)), 6)
risk <- round(0.8 * x + rnorm(n) * 0.5, 1)

at <- function(fit) {
  summary(fit, times = times, extend = TRUE)
}
kaplan_meier <- list(
  weights = at(survfit(Surv(time, event) ~ 1, weights = weights))$surv,
  entry = at(survfit(Surv(entry, time, event) ~ 1))$surv,
  both = at(survfit(Surv(entry, time, event) ~ 1, weights = weights))$surv)
kind <- factor(cause, 0:2, c("none", "a", "b"))
id <- seq_len(n)
aalen_johansen <- list(
  weights = at(survfit(Surv(time, kind) ~ 1, weights = weights))$pstate[, 2],
  entry = at(survfit(Surv(entry, time, kind) ~ 1, id = id))$pstate[, 2])

of_pairs <- function(y, timewt, w = weights) {
  sapply(times, function(t) {
    unname(concordance(y ~ risk, weights = w, timewt = timewt, ymax = t,
                       reverse = TRUE)$concordance)
  })
}
since <- time - entry
concordances <- list(
  harrell = of_pairs(Surv(time, event), "n"),
  uno = of_pairs(Surv(time, event), "n/G2"),
  harrell_since_entry = of_pairs(Surv(since, event), "n"),
  uno_since_entry = of_pairs(Surv(since, event), "n/G2"))

of_survey <- function(j) {
  kept <- end - entry >= times[j]
  data <- data.frame(y = as.integer(since <= times[j] & event == 1),
                     p = 1 - survival_since_entry[, j], w = weights,
                     cluster = cluster, i = id)[kept, ]
  data$loss <- (data$y - data$p)^2
  data$logit <- qlogis(data$p)
  unlist(lapply(list(individual = ~i, cluster = ~cluster), function(ids) {
    design <- svydesign(ids = ids, weights = ~w, data = data)
    mean <- svymean(~loss, design)
    ratio <- svyratio(~y, ~p, design)
    # several times: standard errors are those of the step before the last
    found_first <<- c(0, 1)
    for (k in 1:3) found_first <<- coef(
      svyglm(y ~ logit, design, family = quasibinomial(), start = found_first))
    fit <- svyglm(y ~ logit, design, family = quasibinomial(),
                  start = found_first, epsilon = 1e-14, maxit = 100)
    c(brier = unname(coef(mean)), brier_se = unname(as.numeric(SE(mean))),
      oe = unname(as.numeric(ratio$ratio)), oe_se = as.numeric(SE(ratio)),
      slope = unname(coef(fit)[2]), slope_se = unname(SE(fit)[2]))
  }))
}
found <- sapply(seq_along(times), of_survey)
survey <- lapply(split(found, factor(rownames(found), rownames(found))), unname)

json <- function(v) {
  if (is.list(v)) {
    parts <- paste0('"', names(v), '": ', vapply(v, json, ""))
    return(paste0("{", paste(parts, collapse = ", "), "}"))
  }
  if (is.matrix(v)) {
    return(paste0("[", paste(apply(v, 1, json), collapse = ", "), "]"))
  }
  if (is.character(v)) return(paste0('"', v, '"'))
  paste0("[", paste(sprintf("%.17g", v), collapse = ", "), "]")
}
output <- list(
  versions = list(R = as.character(getRversion()),
                  survival = as.character(packageVersion("survival")),
                  survey = as.character(packageVersion("survey"))),
  data = list(time = time, event = event, cause = cause, entry = entry,
              censoring_time = end, weights = weights, cluster = cluster,
              risk = risk, times = times,
              survival_since_entry = survival_since_entry),
  kaplan_meier = kaplan_meier, aalen_johansen = aalen_johansen,
  concordance = concordances, survey = survey)
writeLines(json(output), "weighted_reference.json")
