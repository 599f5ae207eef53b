// The commands on buffers. Each calls the memory layer when it is submitted. Ranges are within the storage: the origin of a
// sub-buffer is added already.
#pragma once

#include <base/kept.h>
#include <runtime/command.h>
#include <runtime/mem_object.h>

#include <array>
#include <vector>

namespace polder::runtime {

class ReadCommand final : public Command {
public:
    ReadCommand(Kept<MemObject> from, const memory::StorageRect& rect, std::byte* to, driver::RectLayout to_layout)
        : from_(std::move(from)), rect_(rect), to_(to), to_layout_(to_layout) {}
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(&from_->storage());
    }
    void keep() override { from_.keep(); }
    Ref<const RecordedOperation> record() const override;

private:
    Kept<MemObject> from_;
    memory::StorageRect rect_;
    std::byte* to_;
    driver::RectLayout to_layout_;
};

class WriteCommand final : public Command {
public:
    WriteCommand(Kept<MemObject> to, const memory::StorageRect& rect, const std::byte* from,
                 driver::RectLayout from_layout)
        : to_(std::move(to)), rect_(rect), from_(from), from_layout_(from_layout) {}
    Result<void> reserve(const Queue& queue) const override;
    memory::Announcement announce(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(&to_->storage());
    }
    void keep() override { to_.keep(); }
    Ref<const RecordedOperation> record() const override;

private:
    Kept<MemObject> to_;
    memory::StorageRect rect_;
    const std::byte* from_;
    driver::RectLayout from_layout_;
};

class CopyCommand final : public Command {
public:
    CopyCommand(Kept<MemObject> from, const memory::StorageRect& from_rect, Kept<MemObject> to,
                const memory::StorageRect& to_rect)
        : from_(std::move(from)), from_rect_(from_rect), to_(std::move(to)), to_rect_(to_rect) {}
    Result<void> reserve(const Queue& queue) const override;
    memory::Announcement announce(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(&from_->storage());
        storages.push_back(&to_->storage());
    }
    void keep() override {
        from_.keep();
        to_.keep();
    }
    Ref<const RecordedOperation> record() const override;

private:
    Kept<MemObject> from_;
    memory::StorageRect from_rect_;
    Kept<MemObject> to_;
    memory::StorageRect to_rect_;
};

// The pattern of a fill, copied from the application.
class FillPattern {
public:
    explicit FillPattern(std::span<const std::byte> pattern);
    [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }

private:
    std::array<std::byte, driver::FillOperation::max_pattern_bytes> bytes_;
    size_t size_;
};

class FillCommand final : public Command {
public:
    FillCommand(Kept<MemObject> to, ByteRange range, std::span<const std::byte> pattern)
        : to_(std::move(to)), range_(range), pattern_(pattern) {}
    Result<void> reserve(const Queue& queue) const override;
    memory::Announcement announce(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(&to_->storage());
    }
    void keep() override { to_.keep(); }
    Ref<const RecordedOperation> record() const override;

private:
    Kept<MemObject> to_;
    ByteRange range_;
    FillPattern pattern_;
};

// Runs once: clEnqueueMap* has registered a map of the application.
class MapCommand final : public Command {
public:
    // Reserves memory in the map place, because clEnqueueMap* returns its address, and registers the
    // map. mem_object_allocation_failure; invalid_operation when bytes would be mapped for writing twice.
    static Result<MapCommand> create(Ref<MemObject> object, const memory::StorageRect& rect, memory::MapAccess access);
    [[nodiscard]] std::byte* pointer() const { return record_->pointer; }
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(&object_->storage());
    }
    // Removes the registered map, because the command has failed.
    void abandon() const override { object_->cancel_map(*record_); }

private:
    MapCommand(Ref<MemObject> object, Ref<MapRecord> record) : object_(std::move(object)), record_(std::move(record)) {}

    Ref<MemObject> object_;
    Ref<MapRecord> record_;
};

// Runs once: clEnqueueUnmapMemObject has taken the record of a map of the application.
class UnmapCommand final : public Command {
public:
    UnmapCommand(Ref<MemObject> object, Ref<MapRecord> record)
        : object_(std::move(object)), record_(std::move(record)) {}
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(&object_->storage());
    }
    // Returns the record to the object, because the bytes are still mapped.
    void abandon() const override { object_->return_map(record_); }

private:
    Ref<MemObject> object_;
    Ref<MapRecord> record_;
};

class MigrateCommand final : public Command {
public:
    MigrateCommand(std::vector<Ref<MemObject>> objects, SpaceId target, memory::Domain::Content content);
    Result<void> reserve(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        for (const Ref<MemObject>& object : objects_)
            storages.push_back(&object->storage());
    }

private:
    [[nodiscard]] std::vector<memory::Use> uses() const;

    std::vector<Ref<MemObject>> objects_;
    SpaceId target_;
    memory::Domain::Content content_;
    // For a migration to host memory: pins of buffers in the application's memory, so that they keep that memory when they are released.
    std::vector<memory::MapPin> pins_;
};

// Markers, barriers, and commands that only have to be ordered.
class MarkerCommand final : public Command {
public:
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
};

// Copies between two places of plain host memory: clEnqueueSVMMemcpy.
class HostCopyCommand final : public Command {
public:
    HostCopyCommand(std::byte* to, const std::byte* from, ByteCount size) : to_(to), from_(from), size_(size) {}
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    Ref<const RecordedOperation> record() const override;

private:
    std::byte* to_;
    const std::byte* from_;
    ByteCount size_;
};

// Fills plain host memory, on a device that computes there: clEnqueueSVMMemFill.
class HostFillCommand final : public Command {
public:
    HostFillCommand(std::byte* to, ByteCount size, std::span<const std::byte> pattern)
        : to_(to), size_(size), pattern_(pattern) {}
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    Ref<const RecordedOperation> record() const override;

private:
    std::byte* to_;
    ByteCount size_;
    FillPattern pattern_;
};

// Calls a function of the host, on a thread that may block: clEnqueueSVMFree. Runs once, because the function frees its data.
class HostCallCommand final : public Command {
public:
    // `function(data)` is called once and has to free `data`. When the command fails, before or after it was submitted,
    // `discard(data)` is called instead.
    HostCallCommand(void (*function)(void*), void (*discard)(void*), void* data)
        : function_(function), discard_(discard), data_(data) {}
    Result<void> reserve(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void abandon() const override { discard_(data_); }

private:
    void (*function_)(void*);
    void (*discard_)(void*);
    void* data_;
};

}  // namespace polder::runtime
