// Norms, softmax, cross-entropy and optimizer steps against double.
#include <cmath>
#include <limits>

#include "check.h"
#include "host_kernels/norm.h"
#include "host_kernels/optimizer.h"
#include "host_kernels/softmax.h"
#include "values.h"

namespace neuron::test {
namespace {

using namespace host_kernels;

constexpr ScalarType kDtypes[] = {
    ScalarType::Float, ScalarType::BFloat16, ScalarType::Half};
constexpr int64_t kWidths[] = {1, 7, 16, 64, 100, 1025};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void check_value(
    const Values& got,
    int64_t i,
    double wanted,
    double error,
    const char* what) {
  CHECK(rounds_to(got.dtype, got.get(i), wanted, error))
      << what << " " << got.dtype << " " << i << " of " << got.size() << ": "
      << got.get(i) << " wanted " << wanted;
}

void check_norm(
    ScalarType dtype,
    ScalarType parameters,
    int64_t rows,
    int64_t width,
    bool centered) {
  std::mt19937 random(1);
  constexpr float eps = 1e-5f;
  const Norm norm{rows, width, dtype, parameters, centered};
  Values x(dtype, rows * width), y = x, dy = x, dx = x;
  Values w(parameters, width), b = w, dw = w, db = w;
  for (auto* v : {&x, &dy, &w, &b}) {
    v->fill(random);
  }
  std::vector<float> mean(rows), rstd(rows);
  norm_forward(
      norm,
      eps,
      x.data(),
      w.data(),
      b.data(),
      y.data(),
      mean.data(),
      rstd.data());
  norm_backward(
      norm,
      dy.data(),
      x.data(),
      mean.data(),
      rstd.data(),
      w.data(),
      {dx.data(), dw.data(), db.data()});
  std::vector<double> want_dw(width), want_db(width), size_dw(width);
  for (int64_t r = 0; r < rows; ++r) {
    double m = 0, v = 0, shared = 0, along = 0;
    const auto at = [&](int64_t i) { return r * width + i; };
    for (int64_t i = 0; centered && i < width; ++i) {
      m += x.get(at(i)) / width;
    }
    for (int64_t i = 0; i < width; ++i) {
      v += (x.get(at(i)) - m) * (x.get(at(i)) - m) / width;
    }
    const double s = 1 / std::sqrt(v + eps);
    const auto normal = [&](int64_t i) { return (x.get(at(i)) - m) * s; };
    for (int64_t i = 0; i < width; ++i) {
      check_value(
          y,
          at(i),
          normal(i) * w.get(i) + b.get(i),
          1e-5 * (1 + std::abs(normal(i) * w.get(i))),
          "norm");
      const double g = dy.get(at(i)) * w.get(i);
      shared += g / width;
      along += g * normal(i) / width;
      want_dw[i] += dy.get(at(i)) * normal(i);
      size_dw[i] += std::abs(dy.get(at(i)) * normal(i));
      want_db[i] += dy.get(at(i));
    }
    for (int64_t i = 0; i < width; ++i) {
      const double g = dy.get(at(i)) * w.get(i);
      const double wanted =
          s * (g - (centered ? shared : 0) - normal(i) * along);
      check_value(
          dx, at(i), wanted, 2e-5 * s * (1 + std::abs(g)), "norm gradient");
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    check_value(dw, i, want_dw[i], 1e-5 * (1 + size_dw[i]), "weight gradient");
    check_value(db, i, want_db[i], 1e-5 * rows, "bias gradient");
  }
}

TEST(norms_match) {
  for (const auto dtype : kDtypes) {
    for (const auto width : kWidths) {
      for (const bool centered : {true, false}) {
        // One value has no deviation from its mean to divide by.
        if (width > 1 || !centered) {
          check_norm(dtype, dtype, 9, width, centered);
          check_norm(dtype, ScalarType::Float, 300, width, centered);
        }
      }
    }
  }
}

TEST(a_norm_without_parameters_matches_one_with_ones) {
  std::mt19937 random(2);
  Values x(ScalarType::BFloat16, 5 * 33), y = x, z = x;
  Values ones(ScalarType::BFloat16, 33), zeros = ones;
  x.fill(random);
  for (int64_t i = 0; i < 33; ++i) {
    ones.set(i, 1);
    zeros.set(i, 0);
  }
  const Norm norm{5, 33, x.dtype, x.dtype, true};
  norm_forward(
      norm, 1e-5f, x.data(), nullptr, nullptr, y.data(), nullptr, nullptr);
  norm_forward(
      norm,
      1e-5f,
      x.data(),
      ones.data(),
      zeros.data(),
      z.data(),
      nullptr,
      nullptr);
  CHECK(y.bytes == z.bytes);
}

TEST(softmax_matches) {
  for (const auto dtype : kDtypes) {
    for (const auto width : kWidths) {
      for (const bool log : {false, true}) {
        std::mt19937 random(3);
        const int64_t rows = 50;
        Values x(dtype, rows * width), y = x, dy = x, dx = x;
        x.fill(random, 4.0);
        dy.fill(random);
        softmax_forward({rows, width, dtype}, log, x.data(), y.data());
        softmax_backward(
            {rows, width, dtype}, log, dy.data(), y.data(), dx.data());
        for (int64_t r = 0; r < rows; ++r) {
          const auto at = [&](int64_t i) { return r * width + i; };
          double top = -1e30, sum = 0, total = 0, size = 0;
          for (int64_t i = 0; i < width; ++i) {
            top = std::max(top, x.get(at(i)));
          }
          for (int64_t i = 0; i < width; ++i) {
            sum += std::exp(x.get(at(i)) - top);
            const double g = log ? dy.get(at(i)) : dy.get(at(i)) * y.get(at(i));
            total += g;
            size += std::abs(g);
          }
          for (int64_t i = 0; i < width; ++i) {
            const double e = x.get(at(i)) - top;
            const double wanted = log ? e - std::log(sum) : std::exp(e) / sum;
            check_value(
                y,
                at(i),
                wanted,
                2e-6 * (std::abs(wanted) + log * 4),
                "softmax");
            const double value = y.get(at(i)), g = dy.get(at(i));
            check_value(
                dx,
                at(i),
                log ? g - std::exp(value) * total : (g - total) * value,
                1e-6 * (1 + size),
                "softmax gradient");
          }
        }
      }
    }
  }
}

TEST(softmax_of_infinities_and_nan) {
  for (const auto dtype : kDtypes) {
    Values x(dtype, 3 * 40), y = x;
    for (int64_t i = 0; i < 120; ++i) {
      x.set(i, i % 7);
    }
    x.set(5, -std::numeric_limits<double>::infinity());
    x.set(40 + 3, kNan);
    softmax_forward({3, 40, dtype}, false, x.data(), y.data());
    CHECK(y.get(5) == 0.0);
    for (int64_t i = 0; i < 40; ++i) {
      CHECK(std::isfinite(y.get(i)));
      CHECK(std::isnan(y.get(40 + i)));
      CHECK(std::isfinite(y.get(80 + i)));
    }
  }
}

TEST(cross_entropy_matches) {
  for (const auto dtype : kDtypes) {
    for (const float smoothing : {0.0f, 0.1f}) {
      std::mt19937 random(4);
      const int64_t rows = 30, width = 103;
      const CrossEntropy options{-100, smoothing};
      Values x(dtype, rows * width), dx = x;
      x.fill(random, 3.0);
      std::vector<int64_t> targets(rows);
      std::vector<float> losses(rows), lse(rows), g(rows);
      for (int64_t r = 0; r < rows; ++r) {
        targets[r] = r == 4 ? -100 : r * 7 % width;
        g[r] = 0.5f + r;
      }
      CHECK(
          cross_entropy_forward(
              {rows, width, dtype},
              options,
              x.data(),
              targets.data(),
              losses.data(),
              lse.data()) == -1);
      cross_entropy_backward(
          {rows, width, dtype},
          options,
          x.data(),
          targets.data(),
          lse.data(),
          g.data(),
          dx.data());
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0, plain = 0;
        for (int64_t i = 0; i < width; ++i) {
          sum += std::exp(x.get(r * width + i));
          plain += x.get(r * width + i);
        }
        const bool ignored = r == 4;
        const double wanted =
            ignored ? 0
                    : std::log(sum) -
                          (1 - smoothing) * x.get(r * width + targets[r]) -
                          smoothing * plain / width;
        CHECK(std::abs(losses[r] - wanted) < 1e-4) << losses[r] << wanted;
        for (int64_t i = 0; i < width; ++i) {
          const double share =
              smoothing / width + (i == targets[r] ? 1 - smoothing : 0);
          const double p = std::exp(x.get(r * width + i)) / sum;
          check_value(
              dx,
              r * width + i,
              ignored ? 0 : g[r] * (p - share),
              1e-5 * g[r],
              "cross-entropy gradient");
        }
      }
    }
  }
}

TEST(cross_entropy_names_the_first_row_with_a_wrong_target) {
  Values x(ScalarType::Float, 40);
  std::vector<int64_t> targets = {1, 10, 2, -5};
  std::vector<float> losses(4), lse(4);
  CHECK(
      cross_entropy_forward(
          {4, 10, x.dtype},
          {},
          x.data(),
          targets.data(),
          losses.data(),
          lse.data()) == 1);
  CHECK(std::isnan(losses[1]) && std::isnan(losses[3]));
  CHECK(std::isfinite(losses[0]) && std::isfinite(losses[2]));
}

struct State {
  Values p, g, m, v, top;
  State(ScalarType dtype, ScalarType state, int64_t n, std::mt19937& random)
      : p(dtype, n), g(dtype, n), m(state, n), v(state, n), top(state, n) {
    p.fill(random);
    g.fill(random);
    m.fill(random, 0.1);
    for (int64_t i = 0; i < n; ++i) {
      v.set(i, 0.01 * (i % 7 + 1));
      top.set(i, 0.03);
    }
  }
  OptimizedArray array(bool with_maximum) {
    return {
        p.size(),
        p.dtype,
        m.dtype,
        p.data(),
        g.data(),
        m.data(),
        v.data(),
        with_maximum ? top.data() : nullptr,
        3.0f};
  }
};

TEST(adam_matches) {
  for (const auto dtype : kDtypes) {
    for (const auto state : {dtype, ScalarType::Float}) {
      for (const bool decoupled : {true, false}) {
        std::mt19937 random(5);
        std::vector<State> lists;
        std::vector<OptimizedArray> arrays;
        for (const int64_t n : {1, 33, 40000}) {
          lists.emplace_back(dtype, state, n, random);
        }
        for (auto& s : lists) {
          arrays.push_back(s.array(decoupled));
        }
        const auto before = lists;
        AdamOptions o;
        o.weight_decay = 0.1f;
        o.learning_rate = 0.01f;
        o.decoupled_decay = decoupled;
        o.maximize = !decoupled;
        o.gradient_scale = 2.0f;
        adam_step(arrays.data(), arrays.size(), o);
        for (size_t l = 0; l < lists.size(); ++l) {
          for (int64_t i = 0; i < lists[l].p.size(); ++i) {
            double p = before[l].p.get(i);
            double g = before[l].g.get(i) / (decoupled ? 2 : -2);
            if (decoupled) {
              p *= 1 - double(o.learning_rate) * o.weight_decay;
            } else {
              g += o.weight_decay * p;
            }
            const double m = o.beta1 * before[l].m.get(i) + (1 - o.beta1) * g;
            const double v =
                o.beta2 * before[l].v.get(i) + (1 - o.beta2) * g * g;
            const double top =
                decoupled ? std::max(before[l].top.get(i), v) : v;
            const double c1 = 1 - std::pow(double(o.beta1), 3);
            const double c2 = 1 - std::pow(double(o.beta2), 3);
            p -= o.learning_rate / c1 * m / (std::sqrt(top / c2) + o.eps);
            check_value(lists[l].p, i, p, 2e-6 * (1 + std::abs(p)), "adam");
            check_value(lists[l].m, i, m, 2e-6, "adam mean");
            check_value(lists[l].v, i, v, 2e-6, "adam square");
          }
        }
      }
    }
  }
}

TEST(sgd_matches) {
  for (const auto dtype : kDtypes) {
    for (const bool nesterov : {true, false}) {
      for (const bool first : {true, false}) {
        std::mt19937 random(6);
        State s(dtype, dtype, 1000, random);
        const auto before = s;
        const auto array = s.array(false);
        SgdOptions o;
        o.learning_rate = 0.1f;
        o.momentum = 0.9f;
        o.dampening = nesterov ? 0.0f : 0.2f;
        o.weight_decay = 0.05f;
        o.nesterov = nesterov;
        o.first_step = first;
        sgd_step(&array, 1, o);
        for (int64_t i = 0; i < 1000; ++i) {
          const double p = before.p.get(i);
          const double g = before.g.get(i) + o.weight_decay * p;
          const double m =
              first ? g : o.momentum * before.m.get(i) + (1 - o.dampening) * g;
          const double step = nesterov ? g + o.momentum * m : m;
          check_value(s.p, i, p - o.learning_rate * step, 2e-6, "sgd");
          check_value(s.m, i, m, 2e-6, "momentum");
        }
      }
    }
  }
}

TEST(sums_of_squares_and_scaling_match) {
  for (const auto dtype : kDtypes) {
    std::mt19937 random(7);
    Values a(dtype, 70001), b(dtype, 3);
    a.fill(random);
    b.fill(random);
    const auto before = a;
    const Array arrays[] = {
        {a.data(), dtype, a.size()}, {b.data(), dtype, b.size()}};
    double sums[2];
    sums_of_squares(arrays, 2, sums);
    double wanted = 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      wanted += a.get(i) * a.get(i);
    }
    CHECK(std::abs(sums[0] - wanted) < 1e-6 * wanted) << sums[0] << wanted;
    scale_arrays(arrays, 2, 0.3f);
    for (int64_t i = 0; i < a.size(); ++i) {
      check_value(a, i, before.get(i) * double(0.3f), 1e-7, "scaled");
    }
  }
}

}  // namespace
}  // namespace neuron::test

int main(int argc, char** argv) { return neuron::test::run_all(argc, argv); }
