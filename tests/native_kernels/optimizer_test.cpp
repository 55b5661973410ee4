// Optimizer steps against double.
#include <cmath>

#include "check.h"
#include "host_kernels/optimizer.h"
#include "values.h"

namespace neuron::test {
namespace {

using namespace host_kernels;

constexpr ScalarType kDtypes[] = {
    ScalarType::Float, ScalarType::BFloat16, ScalarType::Half};

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
