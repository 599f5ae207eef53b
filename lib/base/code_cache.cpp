#include <base/code_cache.h>

#include <atomic>

namespace polder {
namespace {

std::atomic<CodeCache*> the_cache{nullptr};

}  // namespace

CodeCache* CodeCache::installed() { return the_cache.load(std::memory_order_acquire); }

void CodeCache::install(CodeCache* cache) { the_cache.store(cache, std::memory_order_release); }

}  // namespace polder
