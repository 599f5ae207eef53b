// What another implementation's device is and offers, as Polder's driver interface has it. Only what passes through the
// proxy is listed: the rest (images, shared virtual memory, sub-groups, pipes, queues on the device) is not offered.
#pragma once

#include <proxy/foreign_context.h>
#include <proxy/parameters.h>

namespace polder::proxy {

[[nodiscard]] driver::DeviceInfo info_of(const ForeignContext& context, const Parameters& parameters, SpaceId space);

}  // namespace polder::proxy
