#include "workload.h"

#include <cstring>

namespace bench {

void Session::launch(cl_kernel kernel, size_t items, size_t group) const {
    check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, group ? &group : nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
}

void Session::launch_2d(cl_kernel kernel, size_t items, size_t group) const {
    const size_t global[] = {items, items}, local[] = {group, group};
    check(clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, global, group ? local : nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
}

} // namespace bench

// peers                 lists the rows: name, tab, goal
// peers ROW             prints the seconds of one measurement
int main(int argument_count, char** arguments) {
    for (const auto rows : {bench::command_rows(), bench::kernel_rows(), bench::two_device_rows()})
        for (const bench::Row& row : rows) {
            if (argument_count == 1)
                std::printf("%s\t%g\n", row.name, row.goal);
            else if (std::strcmp(arguments[1], row.name) == 0)
                return std::printf("%.9g\n", row.measure()) < 0;
        }
    return argument_count == 1 ? 0 : 2;
}
