// Checks of arguments that are lists of devices.
#pragma once

#include "entry.h"

#include <algorithm>

namespace polder::api {

// Checks a list of devices, each of which must be among `allowed`, and removes duplicates. A null list with count 0
// means all allowed devices, if `absent` is `all`.
enum class AbsentList : uint8_t { all, invalid };
[[nodiscard]] inline Result<std::vector<Ref<runtime::Device>>>
device_list(std::span<const Ref<runtime::Device>> allowed, cl_uint count, const cl_device_id* list, AbsentList absent) {
    // CL_INVALID_VALUE: num_devices is 0 and device_list is not null, or the other way round; or the list is required and null.
    if ((count == 0) != (list == nullptr) || (!list && absent == AbsentList::invalid))
        return fail(Status::invalid_value);
    if (!list)
        return std::vector<Ref<runtime::Device>>(allowed.begin(), allowed.end());
    std::vector<Ref<runtime::Device>> devices;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(device, from_handle<runtime::Device>(list[i]));
        // CL_INVALID_DEVICE: a device is not one of the context or program.
        if (!std::ranges::count(allowed, device, &Ref<runtime::Device>::get))
            return fail(Status::invalid_device);
        if (!std::ranges::count(devices, device, &Ref<runtime::Device>::get))
            devices.push_back(Ref<runtime::Device>::share(device));
    }
    return devices;
}

}  // namespace polder::api
