// Notes in storages which waiting commands will use them, and withdraws these notes.
#include "domain_impl.h"

#include <base/scope_exit.h>

namespace polder::memory {

Announcement::Announcement(Domain& domain, std::vector<Use> uses, SpaceId space)
    : domain_(&domain), number_(domain.announce(uses, space)), uses_(std::move(uses)) {}

Announcement::~Announcement() {
    if (domain_)
        domain_->withdraw(uses_, number_);
}

uint64_t DomainImpl::announce(std::span<const Use> uses, SpaceId space) {
    const uint64_t number = announced_.fetch_add(1, std::memory_order_relaxed) + 1;
    size_t done = 0;
    // Undoes a part when std::bad_alloc is thrown: otherwise a storage that no command will use would count as used soon for ever.
    const ScopeExit undo{[&]() noexcept {
        if (done != uses.size())
            withdraw(uses.first(done), number);
    }};
    for (; done < uses.size(); ++done) {
        const StorageGuard guard{*uses[done].storage};
        impl(*uses[done].storage).announce({number, space, uses[done].range});
    }
    return number;
}

void DomainImpl::withdraw(std::span<const Use> uses, uint64_t number) noexcept {
    for (const Use& use : uses) {
        const StorageGuard guard{*use.storage};
        impl(*use.storage).withdraw(number);
    }
}

}  // namespace polder::memory
