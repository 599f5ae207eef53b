// An entry is filled in the three steps of clBuildProgram: the object, the program that is linked from it, the program's code. A search compares
// all entries, which costs far less than what a hit saves. The contents of a replaced entry are destroyed after the lock is released, because
// that may unload code.
#include "recent_builds.h"

#include "module/module.h"

#include <base/options.h>

#include <algorithm>
#include <utility>

namespace polder::compiler {
namespace {

bool is_small(const Module& module) {
    const auto& compiled = static_cast<const CompiledModule&>(module);
    return std::max(compiled.bitcode().size(), compiled.host_bitcode().size()) <= RecentBuilds::bitcode_bytes_max;
}

}  // namespace

RecentBuilds& RecentBuilds::get() {
    static auto* const instance = new RecentBuilds;
    return *instance;
}

template <class IsWanted>
RecentBuilds::Entry* RecentBuilds::find(IsWanted is_wanted) {
    const auto found = std::ranges::find_if(entries_, is_wanted);
    if (found == entries_.end())
        return nullptr;
    found->last_use = ++uses_;
    return &*found;
}

std::shared_ptr<const Module> RecentBuilds::compiled(const std::string& key) {
    const Lock lock(mutex_);
    const Entry* const entry = find([&](const Entry& each) { return each.object && each.key == key; });
    return entry ? entry->object : nullptr;
}

void RecentBuilds::keep_compiled(const std::string& key, std::shared_ptr<const Module> object) {
    if (!options::kernel_cache() || !is_small(*object))
        return;
    Entry entry{.key = key, .object = std::move(object)};
    const Lock lock(mutex_);
    if (std::ranges::find(entries_, key, &Entry::key) != entries_.end())
        return;  // another thread has compiled the same source
    entry.last_use = ++uses_;
    std::swap(entry, *std::ranges::min_element(entries_, {}, &Entry::last_use));
}

std::shared_ptr<const Module> RecentBuilds::linked(const LinkInput& input) {
    if (input.modules.size() != 1)
        return nullptr;
    const Lock lock(mutex_);
    const Entry* const entry = find([&](const Entry& each) {
        return each.program && each.object == input.modules[0] && each.is_build == input.is_build &&
               each.link_options == input.options;
    });
    return entry ? entry->program : nullptr;
}

void RecentBuilds::keep_linked(const LinkInput& input, std::shared_ptr<const Module> program) {
    if (input.modules.size() != 1 || program->kind() != ModuleKind::executable || !is_small(*program))
        return;
    std::string link_options = input.options;
    std::shared_ptr<Executable> code;
    const Lock lock(mutex_);
    Entry* const entry = find([&](const Entry& each) { return each.object && each.object == input.modules[0]; });
    if (entry == nullptr)
        return;
    entry->link_options.swap(link_options);
    entry->is_build = input.is_build;
    entry->program.swap(program);
    entry->code.swap(code);
}

std::shared_ptr<Executable> RecentBuilds::code(const Module& program, uint64_t local_memory_bytes) {
    const Lock lock(mutex_);
    const Entry* const entry = find([&](const Entry& each) {
        return each.code && each.program.get() == &program && each.local_memory_bytes == local_memory_bytes;
    });
    return entry ? entry->code : nullptr;
}

void RecentBuilds::keep_code(const Module& program, uint64_t local_memory_bytes, std::shared_ptr<Executable> code) {
    const Lock lock(mutex_);
    if (Entry* const entry = find([&](const Entry& each) { return each.program.get() == &program; })) {
        entry->local_memory_bytes = local_memory_bytes;
        entry->code.swap(code);
    }
}

void RecentBuilds::clear() {
    std::array<Entry, count_max> destroyed;
    const Lock lock(mutex_);
    destroyed.swap(entries_);
}

}  // namespace polder::compiler
