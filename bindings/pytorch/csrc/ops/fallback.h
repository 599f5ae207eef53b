// Operators that ran on the CPU, counted by name.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace torch_opencl {

void count_fallback(const std::string& name);
std::vector<std::pair<std::string, int64_t>> fallback_counts();
void reset_fallback_counts();

}  // namespace torch_opencl
