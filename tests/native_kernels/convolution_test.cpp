#include "host_kernels/convolution.h"

#include "check.h"
#include "values.h"

namespace neuron::test {
namespace {

using host_kernels::ConvolutionShape;
using host_kernels::ImagesIn;
using host_kernels::ImagesOut;
using host_kernels::Spatial;

int64_t volume(const Spatial& s) { return s[0] * s[1] * s[2]; }

struct Images {
  Values values;
  int64_t batch_stride, channel_stride, position_stride;

  Images(
      ScalarType dtype,
      int64_t batch,
      int64_t channels,
      int64_t positions,
      bool channels_last)
      : values(dtype, batch * channels * positions),
        batch_stride(channels * positions),
        channel_stride(channels_last ? 1 : positions),
        position_stride(channels_last ? channels : 1) {}
  int64_t at(int64_t b, int64_t c, int64_t p) const {
    return b * batch_stride + c * channel_stride + p * position_stride;
  }
  ImagesIn in() const {
    return {
        values.data(),
        values.dtype,
        batch_stride,
        channel_stride,
        position_stride};
  }
  ImagesOut out() {
    return {
        values.data(),
        values.dtype,
        batch_stride,
        channel_stride,
        position_stride};
  }
};

struct Sum {
  double value = 0;
  double size = 0;
  void add(double x) {
    value += x;
    size += std::abs(x);
  }
};

void check_sums(
    const Values& got, const std::vector<Sum>& wanted, const char* what) {
  for (int64_t i = 0; i < got.size(); ++i) {
    CHECK(rounds_to(
        got.dtype, got.get(i), wanted[i].value, wanted[i].size * 2e-6 + 1e-7))
        << what << " " << i << ": " << got.get(i) << " wanted "
        << wanted[i].value;
  }
}

// Calls f(output position, input position, tap) for taps inside the input.
template <class Function>
void for_each_tap(const ConvolutionShape& s, Function f) {
  for (int64_t p = 0; p < volume(s.output); ++p) {
    for (int64_t t = 0; t < volume(s.kernel); ++t) {
      const Spatial o = {
          p / s.output[2] / s.output[1],
          p / s.output[2] % s.output[1],
          p % s.output[2]};
      const Spatial k = {
          t / s.kernel[2] / s.kernel[1],
          t / s.kernel[2] % s.kernel[1],
          t % s.kernel[2]};
      int64_t at = 0;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const auto i = o[d] * s.stride[d] - s.padding[d] + k[d] * s.dilation[d];
        inside = inside && i >= 0 && i < s.input[d];
        at = at * s.input[d] + i;
      }
      if (inside) {
        f(p, at, t);
      }
    }
  }
}

void check_convolution(
    ConvolutionShape s, ScalarType dtype, bool channels_last) {
  for (int d = 0; d < 3; ++d) {
    s.output[d] = (s.input[d] + 2 * s.padding[d] -
                   s.dilation[d] * (s.kernel[d] - 1) - 1) /
                      s.stride[d] +
                  1;
  }
  std::mt19937 random(1);
  const auto positions = volume(s.output), inputs = volume(s.input);
  const auto taps = volume(s.kernel);
  const auto ic = s.in_channels / s.groups, oc = s.out_channels / s.groups;
  Images x(dtype, s.batch, s.in_channels, inputs, channels_last);
  Images dx = x;
  Images y(dtype, s.batch, s.out_channels, positions, channels_last);
  Images dy = y;
  Values w(dtype, s.out_channels * ic * taps), dw = w;
  Values bias(dtype, s.out_channels), in_bias(dtype, s.in_channels);
  for (auto* v : {&x.values, &dy.values, &w, &bias, &in_bias}) {
    v->fill(random);
  }
  host_kernels::convolution_forward(
      s, x.in(), {w.data(), dtype}, {bias.data(), dtype}, y.out());
  host_kernels::convolution_input_gradient(
      s, dy.in(), {w.data(), dtype}, {in_bias.data(), dtype}, dx.out());
  host_kernels::convolution_weight_gradient(
      s, x.in(), dy.in(), dw.data(), dtype);
  std::vector<Sum> want_y(y.values.size()), want_dx(dx.values.size());
  std::vector<Sum> want_dw(dw.size());
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t c = 0; c < s.out_channels; ++c) {
      for (int64_t p = 0; p < positions; ++p) {
        want_y[y.at(b, c, p)].add(bias.get(c));
      }
    }
    for (int64_t c = 0; c < s.in_channels; ++c) {
      for (int64_t p = 0; p < inputs; ++p) {
        want_dx[dx.at(b, c, p)].add(in_bias.get(c));
      }
    }
    for_each_tap(s, [&](int64_t p, int64_t i, int64_t t) {
      for (int64_t c = 0; c < s.out_channels; ++c) {
        for (int64_t k = 0; k < ic; ++k) {
          const auto channel = c / oc * ic + k;
          const auto at = (c * ic + k) * taps + t;
          const auto in = x.values.get(x.at(b, channel, i));
          const auto gradient = dy.values.get(dy.at(b, c, p));
          want_y[y.at(b, c, p)].add(in * w.get(at));
          want_dx[dx.at(b, channel, i)].add(gradient * w.get(at));
          want_dw[at].add(gradient * in);
        }
      }
    });
  }
  check_sums(y.values, want_y, "output");
  check_sums(dx.values, want_dx, "input gradient");
  check_sums(dw, want_dw, "weight gradient");
}

constexpr ScalarType kDtypes[] = {
    ScalarType::Float, ScalarType::BFloat16, ScalarType::Half};

void check_all(const ConvolutionShape& shape) {
  for (const auto dtype : kDtypes) {
    check_convolution(shape, dtype, false);
    check_convolution(shape, dtype, true);
  }
}

TEST(two_dimensions_match_the_double_sums) {
  ConvolutionShape s{2, 1, 5, 7, {1, 9, 11}};
  s.kernel = {1, 3, 3};
  s.padding = {0, 1, 1};
  check_all(s);
  s.stride = {1, 2, 2};
  check_all(s);
  s.dilation = {1, 2, 1};
  s.padding = {0, 2, 3};
  check_all(s);
}

TEST(one_dimension_matches) {
  ConvolutionShape s{2, 1, 6, 9, {1, 1, 50}};
  s.kernel = {1, 1, 5};
  s.padding = {0, 0, 2};
  check_all(s);
  s.stride = {1, 1, 3};
  check_all(s);
}

TEST(three_dimensions_match) {
  ConvolutionShape s{1, 1, 3, 4, {5, 6, 7}};
  s.kernel = {3, 2, 3};
  s.padding = {1, 0, 1};
  s.stride = {2, 1, 2};
  check_all(s);
}

TEST(groups_match_down_to_one_channel_each) {
  ConvolutionShape s{2, 2, 6, 4, {1, 8, 8}};
  s.kernel = {1, 3, 3};
  check_all(s);
  s.groups = s.in_channels = s.out_channels = 5;
  check_all(s);
}

TEST(a_channel_per_group_matches_with_stride_dilation_and_odd_padding) {
  ConvolutionShape s{2, 4, 4, 4, {1, 13, 90}};
  s.kernel = {1, 3, 5};
  s.padding = {0, 1, 2};
  check_all(s);
  s.stride = {1, 2, 3};
  check_all(s);
  s.dilation = {1, 3, 2};
  s.padding = {0, 5, 9};
  check_all(s);
  s.input = {4, 5, 6};
  s.kernel = {2, 2, 3};
  s.padding = {1, 1, 1};
  s.dilation = {1, 1, 1};
  s.stride = {1, 2, 2};
  check_all(s);
}

TEST(a_pointwise_convolution_matches) { check_all({3, 1, 20, 24, {1, 6, 7}}); }

TEST(a_patch_embedding_without_overlap_matches) {
  ConvolutionShape s{1, 1, 3, 16, {1, 16, 16}};
  s.kernel = s.stride = {1, 4, 4};
  check_all(s);
}

TEST(padding_wider_than_the_input_gives_the_bias) {
  ConvolutionShape s{1, 1, 2, 3, {1, 2, 2}};
  s.kernel = {1, 3, 3};
  s.padding = {0, 4, 4};
  check_all(s);
}

TEST(many_positions_are_cut_into_tiles) {
  ConvolutionShape s{1, 1, 40, 8, {1, 60, 60}};
  s.kernel = {1, 5, 5};
  s.padding = {0, 2, 2};
  check_convolution(s, ScalarType::BFloat16, false);
}

}  // namespace
}  // namespace neuron::test

int main(int argc, char** argv) { return neuron::test::run_all(argc, argv); }
