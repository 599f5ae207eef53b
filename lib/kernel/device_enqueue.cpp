#include <kernel/device_enqueue.h>

using namespace polder;

namespace {

uint64_t number_of(const void* opaque) { return reinterpret_cast<uintptr_t>(opaque); }
void* opaque_of(uint64_t number) { return reinterpret_cast<void*>(static_cast<uintptr_t>(number)); }

}  // namespace

int32_t polder_device_enqueue(const LaunchContext* context, const void* queue, uint32_t flags, const BlockRange* range,
                              uint32_t event_count, const uint64_t* events, uint64_t* event, const char* block,
                              const void* literal, uint32_t literal_bytes, uint32_t literal_alignment,
                              uint32_t local_count, const uint64_t* local_bytes) noexcept {
    return static_cast<int32_t>(
        context->device_enqueue->enqueue({.queue = number_of(queue),
                                          .flags = flags,
                                          .range = range,
                                          .event_count = event_count,
                                          .events = events,
                                          .event = event,
                                          .block = block,
                                          .literal = {literal, literal_bytes, literal_alignment},
                                          .local_count = local_count,
                                          .local_bytes = local_bytes}));
}

uint32_t polder_device_query(const LaunchContext* context, uint32_t what, const char* block,
                             const BlockRange* range) noexcept {
    return context->device_enqueue->query(static_cast<BlockQuery>(what), block, range);
}

void* polder_device_default_queue(const LaunchContext* context) noexcept {
    return opaque_of(context->device_enqueue->default_queue());
}

void* polder_device_create_event(const LaunchContext* context) noexcept {
    return opaque_of(context->device_enqueue->create_user_event());
}

void polder_device_set_event_status(const LaunchContext* context, const void* event, int32_t status) noexcept {
    context->device_enqueue->set_user_event_status(number_of(event), status);
}

void polder_device_retain_event(const LaunchContext* context, const void* event) noexcept {
    context->device_enqueue->retain_event(number_of(event));
}

void polder_device_release_event(const LaunchContext* context, const void* event) noexcept {
    context->device_enqueue->release_event(number_of(event));
}

int32_t polder_device_is_event(const LaunchContext* context, const void* event) noexcept {
    return context->device_enqueue->is_valid_event(number_of(event)) ? 1 : 0;
}

void polder_device_capture_time(const LaunchContext* context, const void* event, uint64_t* value) noexcept {
    context->device_enqueue->capture_execution_time(number_of(event), value);
}
