// The properties of another implementation's device, in the form of Polder's driver interface. Only features that work through
// the proxy are listed: the rest (shared virtual memory, sub-groups, pipes, queues on the device) is not offered.
#pragma once

#include <proxy/foreign_context.h>
#include <proxy/parameters.h>

namespace polder::proxy {

[[nodiscard]] driver::DeviceInfo info_of(const ForeignContext& context, const Parameters& parameters, SpaceId space);

}  // namespace polder::proxy
