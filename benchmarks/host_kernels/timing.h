// Medians of runs that take turns, so that a disturbance hits all alike.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace neuron::bench {

inline std::vector<double> interleaved(
    const std::vector<std::function<void()>>& runs, int repeats) {
  std::vector<std::vector<double>> seconds(runs.size());
  for (int repeat = -1; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      runs[i]();
      const std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - start;
      if (repeat >= 0) {
        seconds[i].push_back(spent.count());
      }
    }
  }
  std::vector<double> medians;
  for (auto& row : seconds) {
    std::nth_element(row.begin(), row.begin() + row.size() / 2, row.end());
    medians.push_back(row[row.size() / 2]);
  }
  return medians;
}

}  // namespace neuron::bench
