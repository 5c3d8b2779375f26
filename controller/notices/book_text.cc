// The book as the store keeps it.
#include "base/json_dump.h"
#include "controller/notices/book.h"

namespace muster::notices {

MUSTER_RECORD(Acknowledged, by, reason, time)
MUSTER_RECORD(OpenCause, cause, kind, what, detail, next, sparse(common), sparse(common_value), sparse(nodes),
              since, present, known, sparse(known_nodes), turned, sparse(grew), sparse(shrank),
              sparse(most_since), sparse(changed), sparse(last_line), sparse(changes), sparse(first_change),
              sparse(unsaid), sparse(replaces), sparse(ack))
MUSTER_RECORD(ReceiverState, sparse(last_day), sparse(failures), sparse(lost), sparse(behind), sparse(open),
              sparse(tried), sparse(refusals), sparse(answers), sparse(untaken), sparse(untaken_at),
              sparse(next_try), sparse(last_delivery), sparse(failing_since), sparse(error))
MUSTER_RECORD(Book, clock, time, next_number, causes, waiting, receivers, sparse(alone), sparse(gathered),
              sparse(last_summary), sparse(lost))

std::string to_text(const Book& book) { return dump_json(record_json(book)); }

Result<Book> book_from_text(const std::string& text) {
  const auto json = parse_json(text);
  if (!json.ok()) return fail(Code::corrupt, json.error().message);
  auto book = read_record<Book>(*json, "notices");
  if (!book.ok()) return fail(Code::corrupt, book.error().message);
  return book;
}

}  // namespace muster::notices
