// The functions that lib/kernel/cl/device_enqueue.cl calls. Each passes its arguments to the launch's DeviceEnqueue.
//
// Compiled kernels call them, from any thread at once, so their names and signatures are part of the kernel ABI. Queues and events
// are numbers that kernels hold as pointers.
#pragma once

#include <polder/device_enqueue_abi.h>
#include <polder/kernel_abi.h>

extern "C" {
int32_t polder_device_enqueue(const polder::LaunchContext* context, const void* queue, uint32_t flags,
                              const polder::BlockRange* range, uint32_t event_count, const uint64_t* events,
                              uint64_t* event, const char* block, const void* literal, uint32_t literal_bytes,
                              uint32_t literal_alignment, uint32_t local_count, const uint64_t* local_bytes) noexcept;
uint32_t polder_device_query(const polder::LaunchContext* context, uint32_t what, const char* block,
                             const polder::BlockRange* range) noexcept;
void* polder_device_default_queue(const polder::LaunchContext* context) noexcept;
void* polder_device_create_event(const polder::LaunchContext* context) noexcept;
void polder_device_set_event_status(const polder::LaunchContext* context, const void* event, int32_t status) noexcept;
void polder_device_retain_event(const polder::LaunchContext* context, const void* event) noexcept;
void polder_device_release_event(const polder::LaunchContext* context, const void* event) noexcept;
int32_t polder_device_is_event(const polder::LaunchContext* context, const void* event) noexcept;
void polder_device_capture_time(const polder::LaunchContext* context, const void* event, uint64_t* value) noexcept;
}
