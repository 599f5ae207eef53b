// The operations that command buffers record: launches, copies and fills. Each works in the memory of the device that
// executes the command buffer, where the replay has made all bytes present.
#include <memory/trace.h>
#include <runtime/buffer_commands.h>
#include <runtime/launch.h>

namespace polder::runtime {

using driver::Timepoint;
using driver::Waits;
using memory::Execution;
using Addresses = std::span<const DeviceAddress>;

class RecordedLaunch final : public RecordedOperation {
public:
    explicit RecordedLaunch(const LaunchCommand& command) : command_(command) {
        command_.keep();
        uses_.resize(command_.buffers_.size());
        places_.resize(command_.buffers_.size());
        const size_t count = command_.list_uses(uses_, places_);
        uses_.resize(count);
        places_.resize(count);
    }
    void add_uses(std::vector<memory::Use>& uses) const override {
        uses.insert(uses.end(), uses_.begin(), uses_.end());
    }
    Timepoint submit(const Execution& execution, Waits waits, Addresses addresses) const override {
        const Timepoint done = command_.launch(execution.queue, {waits, execution.times}, places_, addresses);
        if (memory::trace::enabled()) [[unlikely]]
            command_.trace(execution, done, uses_);
        return done;
    }

private:
    LaunchCommand command_;
    std::vector<memory::Use> uses_;
    std::vector<LaunchCommand::ArgumentPlace> places_;
};

Ref<const RecordedOperation> LaunchCommand::record() const { return make_ref<RecordedLaunch>(*this); }

namespace {

bool is_contiguous(const memory::StorageRect& rect) {
    const driver::RectShape& shape = rect.shape;
    return (shape.rows == 1 || rect.layout.row_pitch == shape.row_bytes) &&
           (shape.slices == 1 || rect.layout.slice_pitch == shape.rows * shape.row_bytes);
}

// One end of a copy: rows of a buffer; or, when `object` is null, bytes in host memory, which the application must keep.
struct RecordedEnd {
    Ref<MemObject> object;
    memory::StorageRect rect;
    DeviceAddress host;

    [[nodiscard]] driver::CopyOperation::End at(DeviceAddress address) const {
        using Place = driver::CopyOperation::Place;
        return {object ? Place::device : Place::host, address, rect.layout};
    }
};

RecordedEnd end_at(const void* host, driver::RectLayout layout) {
    return {nullptr, {0, {}, layout}, DeviceAddress::of(host)};
}

class RecordedCopy final : public RecordedOperation {
public:
    RecordedCopy(RecordedEnd from, RecordedEnd to, const driver::RectShape& shape)
        : from_(std::move(from)), to_(std::move(to)), shape_(shape) {}
    void add_uses(std::vector<memory::Use>& uses) const override {
        if (from_.object)
            uses.push_back({&from_.object->storage(), from_.rect.span(), Access::read});
        // The bytes between rows stay as they are.
        if (to_.object)
            uses.push_back({&to_.object->storage(), to_.rect.span(),
                            is_contiguous(to_.rect) ? Access::overwrite : Access::read_write});
    }
    bool needs_svm() const override { return !from_.object || !to_.object; }
    Timepoint submit(const Execution& execution, Waits waits, Addresses addresses) const override {
        const DeviceAddress from = from_.object ? addresses.front() : from_.host;
        const DeviceAddress to = to_.object ? addresses.back() : to_.host;
        return execution.queue.copy({from_.at(from), to_.at(to), shape_}, {waits, execution.times});
    }

private:
    RecordedEnd from_;
    RecordedEnd to_;
    driver::RectShape shape_;
};

class RecordedFill final : public RecordedOperation {
public:
    RecordedFill(Ref<MemObject> to, ByteRange range, const FillPattern& pattern)
        : to_(std::move(to)), range_(range), pattern_(pattern) {}
    void add_uses(std::vector<memory::Use>& uses) const override {
        uses.push_back({&to_->storage(), range_, Access::overwrite});
    }
    Timepoint submit(const Execution& execution, Waits waits, Addresses addresses) const override {
        return execution.queue.fill({addresses[0], range_.size(), pattern_.bytes()}, {waits, execution.times});
    }

private:
    Ref<MemObject> to_;
    ByteRange range_;
    FillPattern pattern_;
};

// Fills plain host memory, on a device that computes in host memory.
class RecordedHostFill final : public RecordedOperation {
public:
    RecordedHostFill(DeviceAddress to, ByteCount size, const FillPattern& pattern)
        : to_(to), size_(size), pattern_(pattern) {}
    void add_uses(std::vector<memory::Use>&) const override {}
    bool needs_svm() const override { return true; }
    Timepoint submit(const Execution& execution, Waits waits, Addresses) const override {
        return execution.queue.fill({to_, size_.value, pattern_.bytes()}, {waits, execution.times});
    }

private:
    DeviceAddress to_;
    ByteCount size_;
    FillPattern pattern_;
};

}  // namespace

Ref<const RecordedOperation> CopyCommand::record() const {
    return make_ref<RecordedCopy>(RecordedEnd{from_.share(), from_rect_, {}}, RecordedEnd{to_.share(), to_rect_, {}},
                                  from_rect_.shape);
}

Ref<const RecordedOperation> ReadCommand::record() const {
    return make_ref<RecordedCopy>(RecordedEnd{from_.share(), rect_, {}}, end_at(to_, to_layout_), rect_.shape);
}

Ref<const RecordedOperation> WriteCommand::record() const {
    return make_ref<RecordedCopy>(end_at(from_, from_layout_), RecordedEnd{to_.share(), rect_, {}}, rect_.shape);
}

Ref<const RecordedOperation> HostCopyCommand::record() const {
    if (size_.value == 0)
        return nullptr;
    return make_ref<RecordedCopy>(end_at(from_, {}), end_at(to_, {}), driver::RectShape{size_.value, 1, 1});
}

Ref<const RecordedOperation> HostFillCommand::record() const {
    if (size_.value == 0)
        return nullptr;
    return make_ref<RecordedHostFill>(DeviceAddress::of(to_), size_, pattern_);
}

Ref<const RecordedOperation> FillCommand::record() const {
    return make_ref<RecordedFill>(to_.share(), range_, pattern_);
}

}  // namespace polder::runtime
