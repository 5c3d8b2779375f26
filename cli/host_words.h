// What the words of a hosts file mean, and what is said of those that mean nothing here. No I/O.
#pragma once

#include <string>
#include <vector>

#include "cli/host_entry.h"

namespace muster::cli {

// Returns the name of a host that is only listed as `written`: "gpu01:2222" -> "gpu01-2222"; "" if there is
// none.
std::string name_of_written(const std::string& written);

// Returns why a word, ranges expanded, is no host's, with what to write instead; "" if it is one.
std::string wrong_listed_host(const std::string& written);

// True for two names with the same letters and other numbers, the second one also with a domain: two hosts,
// whatever ssh knows of them.
bool are_siblings(const std::string& name, const std::string& other);

// True if `host`, to which ssh's configuration leads `word`, makes it an alias: it is neither the word nor
// the word with a domain, which `HostName %h.site.org` and CanonicalizeHostname make of every word.
bool leads_elsewhere(const std::string& word, const std::string& host);

// What to write instead of a line with two plain words, or with a destination before a plain word.
std::string two_plain_words(const std::string& name, const std::string& second);
std::string destination_before_name(const std::string& first, const std::string& second);

// True if a line has the second column of a genders file: `compute,rack=1`, in which no word has the signs
// of a destination.
bool is_genders(const std::vector<HostWord>& words);

// Returns the first word of a line that has no place in a genders file: a destination, a key, a third word;
// null if there is none.
const HostWord* not_of_genders(const std::vector<HostWord>& words);

}  // namespace muster::cli
