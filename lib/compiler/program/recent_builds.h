// The newest small programs of this process with their code, so that a program that is built again from the same source shares both.
// Without it each build reads the cache on disk, links, and loads machine code again.
//
// A leaked singleton; any thread may use it. It keeps at most `count_max` programs of at most `bitcode_bytes_max` each, those that were used
// last. Nothing is kept while POCL_KERNEL_CACHE is off. Decision 137.
#pragma once

#include <base/mutex.h>
#include <compiler/compiler.h>

#include <array>

namespace polder::compiler {

class RecentBuilds {
public:
    static constexpr size_t count_max = 32;
    static constexpr size_t bitcode_bytes_max = size_t{256} << 10;

    [[nodiscard]] static RecentBuilds& get();

    // The object that was compiled with this key; null when there is none. A key is that of the cache on disk.
    [[nodiscard]] std::shared_ptr<const Module> compiled(const std::string& key) POLDER_EXCLUDES(mutex_);
    void keep_compiled(const std::string& key, std::shared_ptr<const Module> object) POLDER_EXCLUDES(mutex_);

    // The executable program that was linked of one kept object with these options; null when there is none.
    [[nodiscard]] std::shared_ptr<const Module> linked(const LinkInput& input) POLDER_EXCLUDES(mutex_);
    void keep_linked(const LinkInput& input, std::shared_ptr<const Module> program) POLDER_EXCLUDES(mutex_);

    // The code of a kept program for devices with as much local memory; null when there is none.
    [[nodiscard]] std::shared_ptr<Executable> code(const Module& program, uint64_t local_memory_bytes)
        POLDER_EXCLUDES(mutex_);
    void keep_code(const Module& program, uint64_t local_memory_bytes, std::shared_ptr<Executable> code)
        POLDER_EXCLUDES(mutex_);

    void clear() POLDER_EXCLUDES(mutex_);

private:
    struct Entry {
        std::string key;
        std::shared_ptr<const Module> object;
        std::string link_options;
        bool is_build = false;
        std::shared_ptr<const Module> program;
        uint64_t local_memory_bytes = 0;
        std::shared_ptr<Executable> code;
        uint64_t last_use = 0;
    };
    // The entry that `is_wanted` accepts, as the one that was used last; null when there is none.
    template <class IsWanted>
    Entry* find(IsWanted is_wanted) POLDER_REQUIRES(mutex_);

    Mutex mutex_;
    std::array<Entry, count_max> entries_ POLDER_GUARDED_BY(mutex_);
    uint64_t uses_ POLDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace polder::compiler
