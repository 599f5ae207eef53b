// Random commands on 1 to 4 memories against a model that knows every byte's content, version and holders.
//
// The model acts as an application must: a command waits for the earlier commands whose bytes it really shares, and
// for nothing else. Kernels may declare more than they touch (false sharing), so that commands that do not wait for
// each other still meet in the residency. Devices execute in random order. Checked after every command:
// the bytes moved are the stale bytes needed, versions never shrink, holders are those of the model; and when
// executed: what a command reads is what was written before it.
#pragma once

#include "choices.h"
#include "memory_world.h"
#include "storage_impl.h"
#include "transfer/rect.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace polder::test {

// Whether the devices have room for everything. Where they have not, what is held where, and what moves, is the
// eviction's choice, so that contents and invariants alone are checked.
enum class Room : uint8_t { enough, short_of };

class CoherenceRun {
public:
    explicit CoherenceRun(Choices& choices, Room room = Room::enough)
        : choices_(choices), room_(room),
          world_({.separate_memories = static_cast<uint32_t>(choices.below(4)),
                  .peers = choices.one_in(2) ? Peers::all : Peers::none,
                  .seed = choices.below(1000),
                  .memory_bytes = room == Room::enough ? uint64_t{16384} : uint64_t{2048},
                  .domain = partial(choices.one_in(2))}) {
        for (int i = 0; i < (room == Room::enough ? 2 : 12); ++i)
            storages_.push_back(make_storage());
    }

    void run(int commands) {
        for (int i = 0; i < commands && !::testing::Test::HasFailure(); ++i) {
            command();
            check();
            world_.world.step(choices_.below(8));
        }
        for (const auto& model : storages_)  // the application's memory has to stay
            model->storage = {};
        world_.world.run();
        EXPECT_EQ(checks_open_, 0);
    }

private:
    struct Byte {
        std::optional<uint8_t> content;  // none: undefined
        uint64_t version = 0;
        SpaceSet holders;
    };
    struct Model {
        Ref<memory::Storage> storage;
        std::vector<Byte> bytes;
        std::vector<std::byte> application_memory;
        [[nodiscard]] memory::StorageImpl& impl() const { return static_cast<memory::StorageImpl&>(*storage); }
    };
    // What a command really does to bytes, for the application's dependencies.
    struct Touch {
        const Model* model;
        ByteRange range;
        bool writes;
    };
    struct Issued {
        std::vector<Touch> touches;
        driver::Timepoint done;
    };
    using Expected = std::vector<std::optional<uint8_t>>;

    // Memory for the ranges in use alone, or for whole storages.
    [[nodiscard]] static memory::DomainOptions partial(bool is_partial) {
        return is_partial ? memory::DomainOptions{ByteCount{0}, ByteCount{0}} : memory::DomainOptions{};
    }
    [[nodiscard]] uint8_t random_byte() { return static_cast<uint8_t>(choices_.below(256)); }
    [[nodiscard]] Model& any() { return *storages_[choices_.below(storages_.size())]; }
    [[nodiscard]] uint32_t any_space() { return static_cast<uint32_t>(choices_.below(world_.spaces())); }
    [[nodiscard]] ByteRange any_range(ByteRange within) {
        if (choices_.one_in(3))
            return within;
        const uint64_t begin = within.begin + choices_.below(within.size());
        return {begin, begin + 1 + choices_.below(within.end - begin)};
    }
    [[nodiscard]] static ByteRange whole(const Model& model) { return {0, model.bytes.size()}; }
    // A command on at least so many notes more than the rows where it can.
    static constexpr uint64_t many_rows = 17;
    [[nodiscard]] memory::StorageRect any_rect(uint64_t size) {
        if (choices_.one_in(2))
            return memory::StorageRect::of(any_range({0, size}));
        memory::StorageRect rect;
        if (choices_.one_in(4))
            rect.shape = {1 + choices_.below(2), many_rows + choices_.below(4), 1};
        else
            rect.shape = {1 + choices_.below(6), 1 + choices_.below(4), 1 + choices_.below(3)};
        rect.layout.row_pitch = rect.shape.row_bytes + choices_.below(4);
        rect.layout.slice_pitch = rect.layout.row_pitch * rect.shape.rows + choices_.below(4);
        const uint64_t extent =
            memory::row_offset(rect.layout, rect.shape.rows - 1, rect.shape.slices - 1) + rect.shape.row_bytes;
        rect.offset = choices_.below(size - extent + 1);
        return rect;
    }

    std::unique_ptr<Model> make_storage() {
        auto model = std::make_unique<Model>();
        const uint64_t size = 120 + choices_.below(160);
        model->bytes.resize(size);
        memory::StorageOptions options;
        std::vector<std::byte> initial(size);
        const uint64_t kind = choices_.below(3);
        if (kind > 0)
            std::generate(initial.begin(), initial.end(), [this] { return std::byte{random_byte()}; });
        if (kind == 1)
            options.initial_contents = initial.data();
        if (kind == 2) {
            model->application_memory.resize(size + 256);
            auto base = reinterpret_cast<uintptr_t>(model->application_memory.data());
            base = Alignment{128}.round_up(base) + (choices_.one_in(2) ? 4 : 0);
            options.application_memory = reinterpret_cast<std::byte*>(base);
            std::copy(initial.begin(), initial.end(), options.application_memory);
        }
        model->storage = world_.storage(size, options);
        if (kind > 0)
            for (uint64_t i = 0; i < size; ++i)
                model->bytes[i] = {static_cast<uint8_t>(initial[i]), 1, SpaceSet{model->impl().map_place()}};
        return model;
    }

    // --- the model's side of commands ---

    [[nodiscard]] std::vector<driver::Timepoint> waits_for(const std::vector<Touch>& touches) const {
        std::vector<driver::Timepoint> waits;
        for (const Issued& issued : issued_)
            for (const Touch& before : issued.touches)
                for (const Touch& now : touches)
                    if (before.model == now.model && (before.writes || now.writes) &&
                        before.range.overlaps(now.range)) {
                        waits.push_back(issued.done);
                    }
        return waits;
    }
    [[nodiscard]] static bool on_host(SpaceSet holders) {
        return holders.contains(host_space) || holders.contains(memory::application_space);
    }
    // The bytes that have to come to `space`, which then holds them.
    void make_resident(Model& model, ByteRange range, SpaceId space) {
        for (uint64_t i = range.begin; i < range.end; ++i) {
            Byte& byte = model.bytes[i];
            if (byte.version == 0 || byte.holders.contains(space))
                continue;
            ++needed_;
            byte.holders.insert(space);
        }
    }
    static void become(Model& model, ByteRange range, SpaceId space) {
        for (uint64_t i = range.begin; i < range.end; ++i) {
            ++model.bytes[i].version;
            model.bytes[i].holders = SpaceSet{space};
        }
    }
    // Bytes that several of a command's uses write are one version newer after it.
    static void become_once(const std::vector<Model*>& models, const std::vector<memory::Use>& uses, SpaceId space) {
        for (size_t i = 0; i < uses.size(); ++i) {
            if (!writes(uses[i].access))
                continue;
            for (uint64_t at = uses[i].range.begin; at < uses[i].range.end; ++at) {
                bool known = false;
                for (size_t before = 0; before < i; ++before)
                    known = known || (models[before] == models[i] && writes(uses[before].access) &&
                                      uses[before].range.contains({at, at + 1}));
                if (!known)
                    become(*models[i], {at, at + 1}, space);
            }
        }
    }
    [[nodiscard]] static Expected contents(const Model& model, ByteRange range) {
        Expected expected;
        for (uint64_t i = range.begin; i < range.end; ++i)
            expected.push_back(model.bytes[i].content);
        return expected;
    }
    // At execution: undefined bytes may have any value.
    static void compare(const std::byte* seen, const Expected& expected, const char* what) {
        for (uint64_t i = 0; i < expected.size(); ++i) {
            if (expected[i]) {
                ASSERT_EQ(static_cast<uint8_t>(seen[i]), *expected[i]) << what << ", byte " << i;
            }
        }
    }
    void issue(std::vector<Touch> touches, driver::Timepoint done) { issued_.push_back({std::move(touches), done}); }

    // --- commands ---

    void command() {
        switch (choices_.below(10)) {
        case 0: return read();
        case 1: return write();
        case 2: return copy();
        case 3: return fill();
        case 4: return map();
        case 5: return migrate();
        case 6:
            if (choices_.one_in(4))
                return replace();
            return kernel();
        default: return kernel();
        }
    }

    void kernel() {
        struct Argument {
            ByteRange actual;  // within the use
            Expected expected;
            std::vector<std::byte> written;
        };
        const uint32_t space = any_space();
        std::vector<memory::Use> uses;
        std::vector<Argument> arguments;
        std::vector<Touch> touches;
        std::vector<Model*> models;
        for (uint64_t count = 1 + choices_.below(3); count > 0; --count) {
            Model& model = any();
            const ByteRange declared = any_range(whole(model));
            constexpr Access accesses[] = {Access::none, Access::read, Access::write, Access::read_write,
                                           Access::overwrite};
            const Access access = accesses[choices_.below(5)];
            uses.push_back({model.storage.get(), declared, access});
            models.push_back(&model);
            const ByteRange actual = access == Access::overwrite ? declared : any_range(declared);
            arguments.push_back({{actual.begin - declared.begin, actual.end - declared.begin}, {}, {}});
            if (access != Access::none)
                touches.push_back({&model, actual, writes(access)});
            if (reads(access))
                arguments.back().expected = contents(model, actual);
        }
        for (size_t i = 0; i < uses.size(); ++i)
            if (reads(uses[i].access))
                make_resident(*models[i], uses[i].range, SpaceId{space});
        for (size_t i = 0; i < uses.size(); ++i) {
            if (!writes(uses[i].access))
                continue;
            for (uint64_t at = arguments[i].actual.begin; at < arguments[i].actual.end; ++at) {
                arguments[i].written.push_back(std::byte{random_byte()});
                models[i]->bytes[uses[i].range.begin + at].content = static_cast<uint8_t>(arguments[i].written.back());
            }
        }
        become_once(models, uses, SpaceId{space});
        const auto waits = waits_for(touches);
        ++checks_open_;
        const auto done = world_.kernel(world_.on(space, waits, queue()), uses, [this, arguments](const auto& bytes) {
            for (size_t i = 0; i < arguments.size(); ++i)
                compare(bytes[i] + arguments[i].actual.begin, arguments[i].expected, "kernel");
            for (size_t i = 0; i < arguments.size(); ++i)
                std::copy(arguments[i].written.begin(), arguments[i].written.end(),
                          bytes[i] + arguments[i].actual.begin);
            --checks_open_;
        });
        issue(std::move(touches), done);
    }

    void read() {
        Model& model = any();
        const uint32_t space = any_space();
        const memory::StorageRect rect = any_rect(model.bytes.size());
        const driver::RectLayout layout{rect.shape.row_bytes + 3, (rect.shape.row_bytes + 3) * rect.shape.rows + 1};
        std::vector<std::byte>& to = memory_of(layout, rect.shape);
        std::vector<Touch> touches;
        for (const ByteRange& row : memory::rows_of(rect)) {
            touches.push_back({&model, row, false});
            for (uint64_t i = row.begin; i < row.end; ++i)
                needed_ += model.bytes[i].version > 0 && !on_host(model.bytes[i].holders);
        }
        std::vector<std::pair<uint64_t, Expected>> rows;
        for_rows(rect, [&](uint64_t y, uint64_t z, ByteRange row) {
            rows.emplace_back(memory::row_offset(layout, y, z), contents(model, row));
        });
        const auto waits = waits_for(touches);
        memory::Execution execution = world_.on(space, waits, queue());
        const auto done = *world_.domain->read(execution, *model.storage, rect, to.data(), layout);
        ++checks_open_;
        // Checked by an operation behind it on the same queue.
        static_cast<FakeQueue&>(execution.queue).submit({}, [this, &to, rows] {
            for (const auto& [at, expected] : rows)
                compare(to.data() + at, expected, "read");
            --checks_open_;
        });
        issue(std::move(touches), done);
    }

    void write() {
        Model& model = any();
        const uint32_t space = any_space();
        const memory::StorageRect rect = any_rect(model.bytes.size());
        const driver::RectLayout layout{rect.shape.row_bytes + 2, (rect.shape.row_bytes + 2) * rect.shape.rows};
        std::vector<std::byte>& from = memory_of(layout, rect.shape);
        std::generate(from.begin(), from.end(), [this] { return std::byte{random_byte()}; });
        std::vector<Touch> touches = touches_of(model, rect, true);
        for_rows(rect, [&](uint64_t y, uint64_t z, ByteRange row) {
            for (uint64_t i = 0; i < row.size(); ++i)
                model.bytes[row.begin + i].content = static_cast<uint8_t>(from[memory::row_offset(layout, y, z) + i]);
        });
        if (space != 0)
            needed_ += memory::bytes_of(rect.shape);
        become_rows(model, rect, SpaceId{space});
        const auto waits = waits_for(touches);
        issue(std::move(touches),
              *world_.domain->write(world_.on(space, waits, queue()), *model.storage, rect, from.data(), layout));
    }

    void copy() {
        Model& from = any();
        Model& to = any();
        const uint32_t space = any_space();
        memory::StorageRect from_rect = any_rect(std::min(from.bytes.size(), to.bytes.size()));
        memory::StorageRect to_rect = from_rect;
        if (from_rect.shape.rows == 1 && from_rect.shape.slices == 1)
            to_rect.offset = choices_.below(to.bytes.size() - from_rect.shape.row_bytes + 1);
        std::vector<Touch> touches = touches_of(from, from_rect, false);
        const std::vector<Touch> written = touches_of(to, to_rect, true);
        if (&from == &to && overlap(touches, written))
            return;
        touches.insert(touches.end(), written.begin(), written.end());
        std::vector<Expected> rows;
        for_rows(from_rect, [&](uint64_t, uint64_t, ByteRange row) {
            rows.push_back(contents(from, row));
            for (uint64_t i = row.begin; i < row.end; ++i) {
                const SpaceSet holders = from.bytes[i].holders;
                needed_ +=
                    from.bytes[i].version > 0 && !(space == 0 ? on_host(holders) : holders.contains(SpaceId{space}));
            }
        });
        size_t next = 0;
        for_rows(to_rect, [&](uint64_t, uint64_t, ByteRange row) {
            for (uint64_t i = 0; i < row.size(); ++i)
                to.bytes[row.begin + i].content = rows[next][i];
            ++next;
        });
        become_rows(to, to_rect, SpaceId{space});
        const auto waits = waits_for(touches);
        issue(std::move(touches),
              *world_.domain->copy(world_.on(space, waits, queue()), *from.storage, from_rect, *to.storage, to_rect));
    }

    void fill() {
        Model& model = any();
        const uint32_t space = any_space();
        const ByteRange range = any_range(whole(model));
        const std::byte value{random_byte()};
        for (uint64_t i = range.begin; i < range.end; ++i)
            model.bytes[i].content = static_cast<uint8_t>(value);
        become(model, range, SpaceId{space});
        std::vector<Touch> touches{{&model, range, true}};
        const auto waits = waits_for(touches);
        issue(std::move(touches),
              *world_.domain->fill(world_.on(space, waits, queue()), *model.storage, range, {&value, 1}));
    }

    void map() {
        using memory::MapAccess;
        constexpr MapAccess accesses[] = {MapAccess::read, MapAccess::write, MapAccess::read_write,
                                          MapAccess::write_invalidate};
        const MapAccess access = accesses[choices_.below(4)];
        const bool writes = access != MapAccess::read;
        Model& model = any();
        const uint32_t space = any_space();
        const SpaceId place = model.impl().map_place();
        const memory::StorageRect rect = any_rect(model.bytes.size());
        std::vector<Touch> touches = touches_of(model, rect, writes);
        if (access != MapAccess::write_invalidate)
            for (const ByteRange& row : memory::rows_of(rect))
                make_resident(model, row, place);
        else
            become_rows(model, rect, place);
        const auto pin = world_.domain->reserve_map(*model.storage, rect.span());
        ASSERT_TRUE(pin);
        const auto waits = waits_for(touches);
        auto done = *world_.domain->map(world_.on(space, waits, queue()), *model.storage, rect, access);
        issue(touches, done);
        done.queue->wait(done.value);
        for_rows(rect, [&](uint64_t, uint64_t, ByteRange row) {
            if (access != MapAccess::write_invalidate)
                compare(model.storage->map_address() + row.begin, contents(model, row), "map");
            for (uint64_t i = row.begin; writes && i < row.end; ++i) {
                const uint8_t value = random_byte();
                model.storage->map_address()[i] = std::byte{value};
                model.bytes[i].content = value;
            }
        });
        done = *world_.domain->unmap(world_.on(any_space(), {&done, 1}, queue()), *model.storage, rect, access);
        if (writes)
            become_rows(model, rect, place);
        issue(std::move(touches), done);
    }

    void migrate() {
        Model& model = any();
        const uint32_t space = any_space();
        const SpaceId place = space == 0 ? model.impl().map_place() : SpaceId{space};
        const memory::Use use{model.storage.get(), any_range(whole(model)), Access::read};
        const bool undefined = choices_.one_in(4);
        std::vector<Touch> touches{{&model, use.range, undefined}};
        const auto waits = waits_for(touches);
        if (undefined) {
            become(model, use.range, place);
            for (uint64_t i = use.range.begin; i < use.range.end; ++i)
                model.bytes[i].content.reset();
        } else {
            make_resident(model, use.range, place);
        }
        using Content = memory::Domain::Content;
        issue(std::move(touches), *world_.domain->migrate(world_.on(space, waits, queue()), {&use, 1}, SpaceId{space},
                                                          undefined ? Content::undefined : Content::kept));
    }

    // Releases a storage with work in flight and creates another one.
    void replace() {
        std::unique_ptr<Model>& model = storages_[choices_.below(storages_.size())];
        released_.push_back(std::move(model));  // application memory stays until the end
        released_.back()->storage = {};
        model = make_storage();
    }

    // --- helpers ---

    [[nodiscard]] uint32_t queue() { return static_cast<uint32_t>(choices_.below(2)); }
    std::vector<std::byte>& memory_of(const driver::RectLayout& layout, const driver::RectShape& shape) {
        return host_memory_.emplace_back(memory::row_offset(layout, shape.rows - 1, shape.slices - 1) +
                                         shape.row_bytes);
    }
    template <class F>
    static void for_rows(const memory::StorageRect& rect, F&& f) {
        for (uint64_t z = 0; z < rect.shape.slices; ++z)
            for (uint64_t y = 0; y < rect.shape.rows; ++y)
                f(y, z,
                  ByteRange::at(rect.offset + memory::row_offset(rect.layout, y, z), ByteCount{rect.shape.row_bytes}));
    }
    [[nodiscard]] static std::vector<Touch> touches_of(const Model& model, const memory::StorageRect& rect,
                                                       bool writes) {
        std::vector<Touch> touches;
        for_rows(rect, [&](uint64_t, uint64_t, ByteRange row) { touches.push_back({&model, row, writes}); });
        return touches;
    }
    [[nodiscard]] static bool overlap(const std::vector<Touch>& a, const std::vector<Touch>& b) {
        for (const Touch& one : a)
            for (const Touch& other : b)
                if (one.range.overlaps(other.range))
                    return true;
        return false;
    }
    // A command on many rows includes the bytes between them, unless that makes these stale elsewhere.
    static void become_rows(Model& model, const memory::StorageRect& rect, SpaceId space) {
        const ByteRange span = rect.span();
        const auto is_taken = [&](const Byte& byte) { return byte.holders == SpaceSet{space} || byte.holders.empty(); };
        if (rect.shape.rows >= many_rows &&
            std::all_of(model.bytes.begin() + static_cast<ptrdiff_t>(span.begin),
                        model.bytes.begin() + static_cast<ptrdiff_t>(span.end), is_taken))
            return become(model, span, space);
        for_rows(rect, [&](uint64_t, uint64_t, ByteRange row) { become(model, row, space); });
    }

    void check() {
        if (room_ == Room::enough) {
            EXPECT_EQ(world_.moved(), needed_);
        }
        needed_ = 0;
        for (const auto& model : storages_) {
            ASSERT_TRUE(model->storage->validate());
            if (room_ == Room::short_of)
                continue;
            model->impl().residency().visit(whole(*model), [&](ByteRange range, const memory::RangeState& state) {
                for (uint64_t i = range.begin; i < range.end; ++i) {
                    Byte& byte = model->bytes[i];
                    ASSERT_EQ(state.holders.bits, byte.holders.bits) << "byte " << i;
                    ASSERT_GE(state.version.value, byte.version) << "byte " << i;
                    byte.version = state.version.value;  // may be the version of its neighbour too
                }
            });
        }
    }

    Choices& choices_;
    const Room room_;
    std::deque<std::vector<std::byte>> host_memory_;
    std::vector<std::unique_ptr<Model>> released_;
    MemoryWorld world_;
    std::vector<std::unique_ptr<Model>> storages_;
    std::vector<Issued> issued_;
    uint64_t needed_ = 0;
    int checks_open_ = 0;
};

} // namespace polder::test
