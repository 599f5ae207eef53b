// The memory statistics of a context (cl_polder_memory_statistics), and their tables.
#pragma once

#include "opencl.h"

#include <vector>

struct DeviceReport {
    cl::Device device;
    cl_uint tiles = 0;
    double kernels_ms = 0;
};

// Prints which device did what, what is allocated in which memory, and which bytes went from one memory to
// another. Other implementations than Polder have no such figures; then only the devices are printed.
void print_report(const cl::Context& context, const std::vector<DeviceReport>& devices);
