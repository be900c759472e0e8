# How packages of R are asked; the same as conformance_packages.py does in Python.
#
#     Rscript benchmarks/conformance_packages.R NAME < questions.json > answers.json
#
# Debian: apt-get install r-cran-riskregression r-cran-pec r-cran-ipred r-cran-survival r-cran-jsonlite

suppressMessages({
  library(survival)
  library(prodlim)
  library(jsonlite)
})

not_offered <- function(...) stop(structure(class = c("not_offered", "error", "condition"),
                                            list(message = "", call = NULL)))

# Outcomes in a frame; only some packages take training data at all.
frame_of <- function(d) data.frame(time = d$time, event = d$event)

refuse_training <- function(d) if (!is.null(d$train_time)) not_offered()

# Values at the wanted times, missing where the package gives none there.
at_times <- function(d, times, values) values[match(d$times, times)]

riskregression_score <- function(d, ...) {
  refuse_training(d)
  risks <- 1 - d$survival
  riskRegression::Score(list(model = risks), formula = Hist(time, event) ~ 1, data = frame_of(d), times = d$times,
                        metrics = "brier", null.model = FALSE, ...)$Brier$score
}

riskregression <- list(
  call = "Score(list(risk), Hist(time, event) ~ 1, data, times = times, metrics = \"brier\")",
  stands_on = c("prodlim", "survival"),
  brier = function(d) {
    found <- riskregression_score(d)
    at_times(d, found$times, found$Brier)
  },
  # One value for each time: the mean up to there.
  integrated = function(d) {
    found <- riskregression_score(d, summary = "ibs")
    tail(at_times(d, found$times, found$IBS), 1)
  },
  standard_errors = function(d) {
    found <- riskregression_score(d)
    at_times(d, found$times, found$se)
  })

# Predictions begin with 1 at time 0. Whether the training data, which can be given, matter is for the numbers to tell.
pec_fit <- function(d) {
  trained <- if (is.null(d$train_time)) frame_of(d) else data.frame(time = d$train_time, event = d$train_event)
  pec::pec(list(model = cbind(1, d$survival)), formula = Hist(time, event) ~ 1, data = frame_of(d),
           traindata = trained, times = d$times, start = 0, exact = FALSE, reference = FALSE, verbose = FALSE)
}

pec <- list(
  call = "pec(list(survival), Hist(time, event) ~ 1, data, times = times, exact = FALSE)",
  stands_on = c("prodlim", "survival"),
  brier = function(d) {
    fit <- pec_fit(d)
    at_times(d, fit$time, fit$AppErr$model)
  },
  integrated = function(d) as.numeric(pec::crps(pec_fit(d), times = max(d$times), start = 0)))

ipred_score <- function(d, survival, times) {
  refuse_training(d)
  as.numeric(ipred::sbrier(Surv(d$time, d$event), survival, btime = times))
}

ipred <- list(
  call = "sbrier(Surv(time, event), survival, btime = t)",
  stands_on = c("prodlim", "survival"),
  note = paste("Integrated: of curves as ``survfit`` objects. A matrix, which its help page allows, is an error in R 4."),
  brier = function(d) sapply(seq_along(d$times), function(j) ipred_score(d, d$survival[, j], d$times[j])),
  integrated = function(d) {
    curves <- lapply(seq_along(d$time), function(i) {
      structure(list(time = d$times, surv = d$survival[i, ]), class = "survfit")
    })
    ipred_score(d, curves, d$times)
  })

survival_package <- list(
  call = "survfit(Surv(time, 1 - event) ~ 1)",
  stands_on = character(),
  censoring = function(d) summary(survfit(Surv(time, 1 - event) ~ 1, data = frame_of(d)), times = d$times)$surv)

packages <- list(riskRegression = riskregression, pec = pec, ipred = ipred, survival = survival_package)

first_line <- function(text) trimws(strsplit(trimws(text), "\n")[[1]][1])

answer <- function(package, question) {
  warned <- FALSE
  ask <- package[[question$kind]]
  if (is.null(ask)) return(list("not offered" = TRUE))
  tryCatch(
    withCallingHandlers(
      {
        output <- capture.output(values <- ask(question$data))
        list(values = as.list(as.numeric(values)), warned = warned)
      },
      warning = function(w) {
        warned <<- TRUE
        invokeRestart("muffleWarning")
      }),
    not_offered = function(e) list("not offered" = TRUE),
    error = function(e) list(error = first_line(conditionMessage(e))))
}

version_of <- function(name) as.character(packageVersion(name))

name <- commandArgs(trailingOnly = TRUE)[1]
package <- packages[[name]]
invisible(loadNamespace(name))
questions <- fromJSON(file("stdin"), simplifyMatrix = TRUE)
all_names <- c("R", package$stands_on)
versions <- c(paste(R.version$major, R.version$minor, sep = "."), vapply(package$stands_on, version_of, ""))
cat(toJSON(
  list(version = version_of(name), "stands on" = setNames(as.list(unname(versions)), all_names), call = package$call,
       "training data" = "not taken", note = if (is.null(package$note)) "" else package$note,
       "named brier" = as.list(grep("brier", getNamespaceExports(name), ignore.case = TRUE, value = TRUE)),
       answers = lapply(questions, function(question) answer(package, question))),
  auto_unbox = TRUE, digits = NA, na = "string"))
