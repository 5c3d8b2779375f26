// Sources of rows: drivers/infiniband of Linux 6.12 (core/sysfs.c with the widths of the counters in PMA's
// PortCounters; hw/mlx5/counters.c, sw/rxe/rxe_hw_counters.c, hw/bnxt_re/hw_counters.c, hw/irdma/verbs.c,
// hw/efa/efa_verbs.c); NVIDIA, "Understanding mlx5 Linux Counters and Status Parameters" and
// Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst; AWS, "Monitor an
// Elastic Fabric Adapter". docs/acceptance.md explains the numbers per hour.
#include "base/counter_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"

namespace muster {
namespace {

constexpr const char* kIb = "InfiniBand";
constexpr AtItsEnd kStops = AtItsEnd::stops, kWraps = AtItsEnd::wraps;

constexpr PortCounter kRdma[] = {
    {"counters/symbol_error", kIb, "symbols", 16, kStops, "rdma_symbol_errors", "damaged symbols received"},
    {"counters/link_error_recovery", kIb, "events", 8, kStops, "rdma_link_recoveries",
     "the link trained again and was not lost"},
    {"counters/link_downed", kIb, "events", 8, kStops, "rdma_link_downs", "the link went down"},
    {"hw_counters/link_downed", "rxe", "events", 64, kWraps, "rdma_link_downs",
     "the port of the interface went down"},
    {"counters/port_rcv_errors", kIb, "packets", 16, kStops, "rdma_receive_errors",
     "packets received with an error"},
    {"counters/local_link_integrity_errors", kIb, "events", 4, kStops, "rdma_overruns",
     "more errors on the link than it is to bear"},
    {"counters/excessive_buffer_overrun_errors", kIb, "events", 4, kStops, "rdma_overruns",
     "flow control did not stop the sender in time"},
    {"counters/port_xmit_discards", kIb, "packets", 16, kStops, "rdma_discards",
     "packets not sent, since the port was down or its queue too old"},
    {"counters/port_rcv_constraint_errors", kIb, "packets", 8, kStops, "rdma_constraint_errors",
     "packets received of a partition, or of a kind, that the port does not allow"},
    {"counters/port_xmit_constraint_errors", kIb, "packets", 8, kStops, "rdma_constraint_errors",
     "packets not sent, since the port does not allow their partition or kind"},
    {"counters/port_xmit_wait", kIb, "ticks", 32, kStops, "rdma_xmit_wait",
     "data waited, since the receiver gave no credit or another link was busy"},

    {"hw_counters/rnr_nak_retry_err", "mlx5", "packets", 32, kWraps, "rdma_rnr_errors",
     "the partner had no receive buffer ready and the send was repeated; nothing is lost"},
    {"hw_counters/out_of_sequence", "mlx5", "packets", 32, kWraps, "rdma_retransmissions",
     "packets received after one that is missing"},
    {"hw_counters/packet_seq_err", "mlx5", "packets", 32, kWraps, "rdma_retransmissions",
     "the partner reported a missing packet"},
    {"hw_counters/implied_nak_seq_err", "mlx5", "packets", 32, kWraps, "rdma_retransmissions",
     "the response to a read was missing"},
    {"hw_counters/local_ack_timeout_err", "mlx5", "events", 32, kWraps, "rdma_ack_timeouts",
     "no acknowledgement came in time"},
    {"hw_counters/roce_adp_retrans", "mlx5", "packets", 32, kWraps, "rdma_retransmissions",
     "sent again by adaptive retransmission"},
    {"hw_counters/roce_adp_retrans_to", "mlx5", "events", 32, kWraps, "rdma_ack_timeouts",
     "a timeout of adaptive retransmission"},
    {"hw_counters/req_transport_retries_exceeded", "mlx5", "events", 32, kWraps, "rdma_retries_exceeded",
     "no acknowledgement after all retries"},
    {"hw_counters/req_rnr_retries_exceeded", "mlx5", "events", 32, kWraps, "rdma_retries_exceeded",
     "the partner had no receive buffer after all retries"},
    {"hw_counters/rx_icrc_encapsulated", "mlx5", "packets", 64, kWraps, "rdma_checksum_errors",
     "RoCE packets received with a wrong checksum of their own (ICRC), though Ethernet's was right"},
    {"hw_counters/np_cnp_sent", "mlx5", "packets", 64, kWraps, "rdma_congestion",
     "the partner was notified of congestion"},
    {"hw_counters/rp_cnp_handled", "mlx5", "packets", 64, kWraps, "rdma_congestion",
     "notified of congestion, and sent more slowly"},

    {"hw_counters/rcvd_rnr_err", "rxe", "packets", 64, kWraps, "rdma_rnr_errors",
     "the partner had no receive buffer ready"},
    {"hw_counters/out_of_seq_request", "rxe", "packets", 64, kWraps, "rdma_retransmissions",
     "a request after one that is missing"},
    {"hw_counters/rcvd_seq_err", "rxe", "packets", 64, kWraps, "rdma_retransmissions",
     "the partner reported a missing packet"},
    {"hw_counters/completer_retry_err", "rxe", "events", 64, kWraps, "rdma_software_retries",
     "sent again, after a timeout too"},
    {"hw_counters/retry_exceeded_err", "rxe", "events", 64, kWraps, "rdma_software_retries",
     "no acknowledgement after all retries"},
    {"hw_counters/retry_rnr_exceeded_err", "rxe", "events", 64, kWraps, "rdma_software_retries",
     "the partner had no receive buffer after all retries"},

    {"hw_counters/rnr_naks_rcvd", "bnxt_re", "packets", 64, kWraps, "rdma_rnr_errors",
     "the partner had no receive buffer ready"},
    {"hw_counters/oos_drop_count", "bnxt_re", "packets", 64, kWraps, "rdma_retransmissions",
     "packets received after one that is missing"},
    {"hw_counters/seq_err_naks_rcvd", "bnxt_re", "packets", 64, kWraps, "rdma_retransmissions",
     "the partner reported a missing packet"},
    {"hw_counters/missing_resp", "bnxt_re", "packets", 64, kWraps, "rdma_retransmissions",
     "the response to a read was missing"},
    {"hw_counters/to_retransmits", "bnxt_re", "events", 64, kWraps, "rdma_ack_timeouts",
     "no acknowledgement came in time"},
    {"hw_counters/max_retry_exceeded", "bnxt_re", "events", 64, kWraps, "rdma_retries_exceeded",
     "no acknowledgement after all retries"},
    {"hw_counters/rx_roce_discards", "bnxt_re", "packets", 64, kWraps, "rdma_discards",
     "packets dropped on arrival"},
    {"hw_counters/rx_cnp_pkts", "bnxt_re", "packets", 64, kWraps, "rdma_congestion",
     "notified of congestion"},
    {"hw_counters/tx_cnp_pkts", "bnxt_re", "packets", 64, kWraps, "rdma_congestion",
     "the partner was notified of congestion"},

    {"hw_counters/tcpRetransSegs", "irdma", "packets", 64, kWraps, "rdma_retransmissions", "sent again"},
    {"hw_counters/cnpHandled", "irdma", "packets", 64, kWraps, "rdma_congestion", "notified of congestion"},
    {"hw_counters/cnpSent", "irdma", "packets", 64, kWraps, "rdma_congestion",
     "the partner was notified of congestion"},

    // SRD loses and repeats packets by design: it spreads them over many paths.
    {"hw_counters/retrans_pkts", "efa", "packets", 64, kWraps, "rdma_repeated_by_design", "sent again"},
    {"hw_counters/retrans_timeout_events", "efa", "events", 64, kWraps, "rdma_repeated_by_design",
     "a timeout, after which another path is taken"},
    {"hw_counters/unresponsive_remote_events", "efa", "events", 64, kWraps, "rdma_retries_exceeded",
     "the partner did not respond"},
    {"hw_counters/rx_drops", "efa", "packets", 64, kWraps, "rdma_discards", "packets dropped on arrival"},
};

constexpr const char* kSentinel = "NVIDIA/NVSentinel, NIC health monitor";
constexpr const char* kOfBitErrors = "derived from the bit error ratio that IEEE 802.3 allows a link";
constexpr PortMetric kRdmaMetrics[] = {
    {"rdma_symbol_errors", Proves::link, 120, kSentinel},
    {"rdma_link_recoveries", Proves::link, 300, kSentinel},
    {"rdma_link_downs", Proves::link, 0, kSentinel},
    {"rdma_receive_errors", Proves::link, 36000, kSentinel},
    {"rdma_overruns", Proves::link, 0, kSentinel},
    {"rdma_checksum_errors", Proves::link, 0, "Ethernet's checksum lets one damaged packet in 2^32 pass"},
    {"rdma_retransmissions", Proves::loss, 60000, kOfBitErrors},
    {"rdma_ack_timeouts", Proves::loss, 600, kOfBitErrors},
    {"rdma_retries_exceeded", Proves::broken, 0, "no connection of a healthy fabric ends so"},
    {"rdma_lossless_discards", Proves::loss, 0, "a lossless class loses nothing"},
    // In soft-RoCE a processor that is busy for a moment is enough for it.
    {"rdma_software_retries", Proves::broken, {}, ""},
    {"rdma_discards", Proves::loss, {}, ""},
    {"rdma_repeated_by_design", Proves::loss, {}, ""},
    {"rdma_rnr_errors", Proves::flow_control, {}, ""},
    {"rdma_xmit_wait", Proves::flow_control, {}, ""},
    {"rdma_pauses", Proves::flow_control, {}, ""},
    {"rdma_congestion", Proves::congestion, {}, ""},
    {"rdma_constraint_errors", Proves::refusal, {}, ""},
};

// Not rx_dropped, rx_missed_errors and rx_over_errors: the host was too slow, or nothing wanted the packet.
constexpr const char* kKernel = "kernel";
constexpr PortCounter kNetwork[] = {
    {"statistics/rx_errors", kKernel, "packets", 64, kWraps, "network_errors",
     "packets received with an error"},
    {"statistics/tx_errors", kKernel, "packets", 64, kWraps, "network_errors",
     "packets that could not be sent"},
    {"statistics/rx_crc_errors", kKernel, "packets", 64, kWraps, "network_errors",
     "packets received with a wrong checksum"},
    {"carrier_down_count", kKernel, "events", 32, kWraps, "link_down", "the link went down"},
};

constexpr PortCounter kPriorities[] = {
    {"rx_prio{}_discards", "mlx5", "packets", 64, kWraps, "rdma_lossless_discards", "dropped on arrival"},
    {"rx_prio{}_buf_discard", "mlx5", "packets", 64, kWraps, "rdma_lossless_discards",
     "dropped on arrival, since the port's buffer was full"},
    {"rx_prio{}_pause", "mlx5", "pauses", 64, kWraps, "rdma_pauses", "the switch made this port wait"},
    {"tx_prio{}_pause", "mlx5", "pauses", 64, kWraps, "rdma_pauses", "this port made the switch wait"},
    // IEEE 802.3x: the whole port, where it is set to that and not to priorities.
    {"rx_global_pause", "mlx5", "pauses", 64, kWraps, "rdma_pauses", "the switch made this port wait"},
    {"tx_global_pause", "mlx5", "pauses", 64, kWraps, "rdma_pauses", "this port made the switch wait"},
    {"rx_pfc_ena_frames_pri{}", "bnxt_en", "pauses", 64, kWraps, "rdma_pauses",
     "the switch made this port wait"},
    {"tx_pfc_ena_frames_pri{}", "bnxt_en", "pauses", 64, kWraps, "rdma_pauses",
     "this port made the switch wait"},
};

constexpr Words<Proves, 6> kProves = {{{Proves::link, "link"},
                                       {Proves::loss, "loss"},
                                       {Proves::broken, "broken connection"},
                                       {Proves::flow_control, "flow control"},
                                       {Proves::congestion, "congestion"},
                                       {Proves::refusal, "refusal"}}};

}  // namespace

std::string_view to_string(Proves proves) { return word_of(kProves, proves); }

std::span<const PortCounter> rdma_port_counters() { return kRdma; }
std::span<const PortCounter> network_port_counters() { return kNetwork; }
std::span<const PortCounter> priority_counters() { return kPriorities; }
std::span<const PortMetric> rdma_port_metrics() { return kRdmaMetrics; }

const PortCounter* find_rdma_counter(std::string_view file) {
  const auto* at =
      std::find_if(std::begin(kRdma), std::end(kRdma), [&](const auto& row) { return row.file == file; });
  return at == std::end(kRdma) ? nullptr : at;
}

Rise rise_of(const PortCounter& counter, std::optional<uint64_t> before, uint64_t now) {
  // An adapter keeps its counts while its driver is reloaded, so a new file need not begin at 0.
  if (!before) return {0, fmt::format("{} was not there before", counter.name())};
  if (counter.end == AtItsEnd::stops && now == counter.highest())  // above it, this driver counts further
    return {rise_from(*before, now),
            fmt::format("{} stands at {}, where it ends: nothing more is counted until it is "
                        "reset (`perfquery -R`)",
                        counter.name(), counter.highest())};
  if (now >= *before) return {now - *before, ""};
  // Only one that had counted far can have passed its end; any other was reset.
  if (counter.end == AtItsEnd::wraps && counter.bits < 64 && *before > counter.highest() / 2 &&
      *before <= counter.highest())
    return {counter.highest() - *before + 1 + now, ""};
  return {now, fmt::format("{} was reset in between", counter.name())};
}

}  // namespace muster
