// What commands that are held back will use, noted in their storages.
#include "domain_impl.h"

namespace polder::memory {

Announcement::Announcement(Domain& domain, std::vector<Use> uses, SpaceId space)
    : domain_(&domain), number_(domain.announce(uses, space)), uses_(std::move(uses)) {}

Announcement::~Announcement() {
    if (domain_)
        domain_->withdraw(uses_, number_);
}

uint64_t DomainImpl::announce(std::span<const Use> uses, SpaceId space) {
    const uint64_t number = announced_.fetch_add(1, std::memory_order_relaxed) + 1;
    for (const Use& use : uses) {
        const StorageGuard guard{*use.storage};
        impl(*use.storage).announce({number, space, use.range});
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
