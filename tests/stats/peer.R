# What R makes of the same data sets as har_stat_peer.c: survival's survfit and survdiff, glm.
# Called by peer.py with the file of data sets; prints one result a line.
suppressPackageStartupMessages(library(survival))
lines <- readLines(commandArgs(trailingOnly = TRUE)[1])
say <- function(set, name, value) cat(sprintf("%d %s %.17g\n", set, name, value))
group <- function(v) { n <- v[1]; m <- matrix(v[2:(1 + 2 * n)], nrow = 2); list(n = n, time = m[1, ], event = m[2, ]) }
for (index in seq_along(lines)) {
  words <- strsplit(lines[index], " ")[[1]]
  set <- index - 1
  v <- as.numeric(words[-1])
  if (words[1] == "survival") {
    g <- group(v[-(1:2)])
    fit <- survfit(Surv(g$time, g$event) ~ 1, conf.int = v[1], conf.type = "log-log")
    for (i in seq_along(fit$time)) {
      s <- fit$surv[i]
      say(set, sprintf("time.%d", i - 1), fit$time[i])
      say(set, sprintf("survival.%d", i - 1), s)
      if (s > 0) say(set, sprintf("deviation.%d", i - 1), fit$std.err[i] * s)
      if (s > 0 && s < 1) {
        say(set, sprintf("low.%d", i - 1), fit$lower[i])
        say(set, sprintf("high.%d", i - 1), fit$upper[i])
      }
    }
    table <- summary(fit, rmean = v[2])$table
    say(set, "mean", table[["rmean"]])
    say(set, "mean_deviation", table[["se(rmean)"]])
  } else if (words[1] == "log_rank") {
    a <- group(v)
    b <- group(v[-(1:(1 + 2 * a$n))])
    time <- c(a$time, b$time); event <- c(a$event, b$event)
    side <- rep(c(1, 2), c(a$n, b$n))
    test <- survdiff(Surv(time, event) ~ side)
    say(set, "observed", test$obs[1])
    say(set, "expected", test$exp[1])
    say(set, "chi_square", test$chisq)
    say(set, "p", pchisq(test$chisq, 1, lower.tail = FALSE))
  } else if (words[1] == "dose") {
    m <- matrix(v[-(1:2)], nrow = 3)
    x <- log10(m[1, ])
    # At this epsilon glm may say that rounding keeps it from settling; the comparison tells.
    fit <- suppressWarnings(glm(cbind(m[2, ], m[3, ] - m[2, ]) ~ x, family = binomial,
               control = glm.control(epsilon = 1e-15, maxit = 100)))
    b <- coef(fit)
    # summary(fit) has the weights of the step before the last, good to half the digits only.
    mu <- fitted(fit)
    V <- solve(t(model.matrix(fit)) %*% (model.matrix(fit) * (m[3, ] * mu * (1 - mu))))
    # Fieller from its textbook form: ratio r = -a/b, g = z^2 var(b)/b^2.
    z <- qnorm(0.5 + 0.5 * v[1])
    r <- -b[[1]] / b[[2]]
    g <- z^2 * V[2, 2] / b[[2]]^2
    say(set, "intercept", b[[1]]); say(set, "slope", b[[2]])
    say(set, "var_intercept", V[1, 1]); say(set, "covariance", V[1, 2]); say(set, "var_slope", V[2, 2])
    say(set, "log_ed50", r)
    if (g < 1) {
      centre <- r + g / (1 - g) * (r + V[1, 2] / V[2, 2])
      half <- z / (abs(b[[2]]) * (1 - g)) *
        sqrt(V[1, 1] + 2 * r * V[1, 2] + r^2 * V[2, 2] - g * (V[1, 1] - V[1, 2]^2 / V[2, 2]))
      say(set, "log_low", centre - half); say(set, "log_high", centre + half)
    }
  }
}
