// Checks of arguments that are lists of devices.
#pragma once

#include "entry.h"

#include <algorithm>

namespace polder::api {

// The checked devices of a list whose every device must be among `allowed`, each once. A null list with count 0
// means all of them, if `absent` allows it.
enum class AbsentList : uint8_t { all, invalid };
[[nodiscard]] inline Result<std::vector<Ref<runtime::Device>>>
device_list(std::span<const Ref<runtime::Device>> allowed, cl_uint count, const cl_device_id* list, AbsentList absent) {
    // A count without a list, or a list without a count.
    if ((count == 0) != (list == nullptr) || (!list && absent == AbsentList::invalid))
        return fail(Status::invalid_value);
    if (!list)
        return std::vector<Ref<runtime::Device>>(allowed.begin(), allowed.end());
    std::vector<Ref<runtime::Device>> devices;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(device, from_handle<runtime::Device>(list[i]));
        // Not one of the context's or the program's.
        if (!std::ranges::count(allowed, device, &Ref<runtime::Device>::get))
            return fail(Status::invalid_device);
        if (!std::ranges::count(devices, device, &Ref<runtime::Device>::get))
            devices.push_back(Ref<runtime::Device>::share(device));
    }
    return devices;
}

} // namespace polder::api
