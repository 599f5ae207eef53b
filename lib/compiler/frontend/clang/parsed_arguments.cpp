#include "parsed_arguments.h"

#include <algorithm>

namespace polder::compiler {

ParsedArguments& ParsedArguments::get() {
    static auto* const instance = new ParsedArguments;
    return *instance;
}

ParsedArguments::Invocation ParsedArguments::find(const std::vector<std::string>& arguments) {
    const Lock lock(mutex_);
    const auto found = std::ranges::find(entries_, arguments, &Entry::arguments);
    if (found == entries_.end())
        return nullptr;
    std::rotate(found, found + 1, entries_.end());
    return entries_.back().parsed;
}

// Destroys an older entry after the lock is released.
void ParsedArguments::keep(const std::vector<std::string>& arguments, Invocation parsed) {
    Entry entry{arguments, std::move(parsed), nullptr};
    Entry oldest;
    const Lock lock(mutex_);
    if (entries_.size() == size_max) {
        std::swap(oldest, entries_.front());
        entries_.erase(entries_.begin());
    }
    entries_.push_back(std::move(entry));
}

ParsedArguments::Macros ParsedArguments::macros(const std::vector<std::string>& arguments) {
    const Lock lock(mutex_);
    const auto found = std::ranges::find(entries_, arguments, &Entry::arguments);
    return found == entries_.end() ? nullptr : found->macros;
}

void ParsedArguments::keep_macros(const std::vector<std::string>& arguments, const Macros& macros) {
    const Lock lock(mutex_);
    if (const auto found = std::ranges::find(entries_, arguments, &Entry::arguments); found != entries_.end())
        found->macros = macros;
}

void ParsedArguments::clear() {
    std::vector<Entry> destroyed;
    const Lock lock(mutex_);
    destroyed.swap(entries_);
}

}  // namespace polder::compiler
