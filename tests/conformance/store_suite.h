// What every Store must do. Run by tests/conformance/store_test.cc over each implementation.
#pragma once

#include <memory>

#include "controller/ports/store.h"

namespace muster::conformance {

// One implementation under test, with the loop its callbacks need.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  virtual Store& store() = 0;
  // Runs callbacks until every batch that was handed over has been answered.
  virtual void settle() = 0;
  // Orderly end of the controller, then the next one on the same data.
  virtual void reopen() = 0;
};

// Asserts with Catch2.
void rows_come_back_as_written(StoreHarness& h);
void rows_with_a_key_replace(StoreHarness& h);
void a_forgotten_node_is_locked_out(StoreHarness& h);
void a_power_on_takes_its_tokens_along(StoreHarness& h);
void older_certificates_end_with_a_new_one(StoreHarness& h);
void journal_keeps_order(StoreHarness& h);
void batches_are_all_or_nothing(StoreHarness& h);
void done_comes_later_and_in_order(StoreHarness& h);
void plans_are_found_by_prefix(StoreHarness& h);
void large_parts_are_left_out(StoreHarness& h);
void the_archive_has_what_the_store_has(StoreHarness& h);
void events_are_paged(StoreHarness& h);
void events_are_found(StoreHarness& h);
void old_events_are_purged(StoreHarness& h);
void reports_are_kept_per_run(StoreHarness& h);
void rollouts_are_kept_by_id(StoreHarness& h);
void there_is_one_row_of_notices(StoreHarness& h);
void ids_grow(StoreHarness& h);
void everything_survives_reopening(StoreHarness& h);

}  // namespace muster::conformance
