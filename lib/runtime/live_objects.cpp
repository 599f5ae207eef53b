#include <runtime/handle.h>
#include <runtime/live_objects.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace polder::runtime {
namespace {

struct Name {
    Kind kind;
    std::string_view one, many;
};
// In the order in which they hold each other. Platforms and devices are not the application's.
constexpr Name object_names[] = {
    {Kind::context, "context", "contexts"},
    {Kind::queue, "command queue", "command queues"},
    {Kind::mem_object, "memory object", "memory objects"},
    {Kind::sampler, "sampler", "samplers"},
    {Kind::program, "program", "programs"},
    {Kind::kernel, "kernel", "kernels"},
    {Kind::event, "event", "events"},
    {Kind::command_buffer, "command buffer", "command buffers"},
    {Kind::semaphore, "semaphore", "semaphores"},
    {Kind::device_queue, "queue on a device", "queues on devices"},
};

// A line of text without the heap. What does not fit is left out.
class Line {
public:
    void add(std::string_view text) {
        const size_t fits = std::min(text.size(), sizeof text_ - size_);
        std::memcpy(text_ + size_, text.data(), fits);
        size_ += fits;
    }
    void add(uint64_t number) {
        const std::to_chars_result result = std::to_chars(text_ + size_, std::end(text_), number);
        size_ = static_cast<size_t>(result.ptr - text_);
    }
    [[nodiscard]] std::string_view text() const { return {text_, size_}; }

private:
    char text_[512];
    size_t size_ = 0;
};

extern "C" void report_live_objects(int) {
    const int error = errno;
    Line line;
    line.add("polder: alive: ");
    bool is_first = true;
    for (const Name& name : object_names) {
        const uint64_t count = HandleHeap::count(name.kind);
        if (count == 0)
            continue;
        line.add(is_first ? "" : ", ");
        line.add(count);
        line.add(" ");
        line.add(count == 1 ? name.one : name.many);
        is_first = false;
    }
    line.add(is_first ? "nothing\n" : "\n");
    // A failure cannot be reported.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.text().data(), line.text().size());
    errno = error;
}

} // namespace

void report_live_objects_on_sigusr2() {
    struct sigaction action = {};
    action.sa_handler = report_live_objects;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGUSR2, &action, nullptr);
}

} // namespace polder::runtime
