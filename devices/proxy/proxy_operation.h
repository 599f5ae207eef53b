// One submitted operation of a ProxyQueue. Each of its events has a reference of the operation's.
#pragma once

#include <foreign/foreign_operation.h>
#include <proxy/proxy_kernel.h>

namespace polder::proxy {

using Operation = devices::ForeignOperation<cl_event, LaunchWork>;
using EventList = SmallVector<cl_event, 4>;

}  // namespace polder::proxy
