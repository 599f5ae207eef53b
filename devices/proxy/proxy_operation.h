// One submitted operation of a ProxyQueue, with copies of everything that the caller's points to.
#pragma once

#include <base/small_vector.h>

#include <polder/driver.h>
#include <proxy/proxy_kernel.h>
#include <variant>
#include <vector>

namespace polder::proxy {

struct MarkerWork {};
struct FillWork {
    DeviceAddress to;
    uint64_t size;
    std::vector<std::byte> pattern;
};

using EventList = SmallVector<cl_event, 4>;

struct Operation {
    uint64_t value = 0;
    std::vector<driver::Timepoint> waits;  // complete on the host before the operation is pushed
    // Complete in the implementation before the operation executes: its events, each with a reference of the
    // operation's, and whose they are.
    EventList events;
    std::vector<driver::Timepoint> after;
    std::vector<uint64_t> own_waits;  // of the same queue: must have succeeded
    bool has_failed_wait = false;
    driver::OperationTimes* times = nullptr;
    std::variant<MarkerWork, driver::CopyOperation, FillWork, LaunchWork, driver::HostOperation> work;
};

} // namespace polder::proxy
