// Operators that ran on the CPU, counted by name, and how others run there too.
#pragma once

#include <ATen/core/boxing/BoxedKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace torch_opencl {

void count_fallback(const std::string& name);
std::vector<std::pair<std::string, int64_t>> fallback_counts();
void reset_fallback_counts();

// Runs any operator on the CPU, counted.
c10::BoxedKernel fallback_kernel();
// "add.out": an operator of ATen.
c10::OperatorHandle find_operator(const std::string& name);

}  // namespace torch_opencl
