#include "controller/image/ram_drivers.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

// Storage drivers: common ones and those of virtual machines first.
const Names kStorage = {
    "nvme",         "ahci",          "sd_mod",   "virtio_pci", "virtio_blk", "virtio_scsi",  "megaraid_sas",
    "mpt3sas",      "smartpqi",      "hpsa",     "aacraid",    "mpi3mr",     "vmd",          "crc32c_generic",
    "crc32c_intel", "arcmsr",        "pm80xx",   "mvsas",      "mvumi",      "isci",         "hptiop",
    "stex",         "esas2r",        "3w-9xxx",  "3w-sas",     "3w-xxxx",    "ipr",          "ips",
    "pmcraid",      "megaraid_mbox", "mptsas",   "mptspi",     "myrb",       "myrs",         "aic79xx",
    "aic7xxx",      "sym53c8xx",     "mtip32xx", "vmw_pvscsi", "hv_storvsc", "xen-blkfront", "xen-scsifront",
    "pci-hyperv"};
// Network modules in addition to the folders below: drivers of virtual machines and of USB adapters that
// firmware can boot from; bonding and VLANs.
const Names kNetwork = {"virtio_net", "vmxnet3",      "hv_netvsc", "xen-netfront", "r8152", "asix",
                        "cdc_ncm",    "ax88179_178a", "cdc_ether", "bonding",      "8021q"};
const Names kNetworkFolders = {"kernel/drivers/net/ethernet/", "kernel/drivers/net/phy/",
                               "kernel/drivers/net/mdio/", "kernel/drivers/net/pcs/"};
const Names kOther = {"virtio_rng", "xfs",    "fuse",        "raid0",       "raid1",        "raid10",
                      "raid456",    "dm_mod", "mlx5_ib",     "ipmi_si",     "ipmi_devintf", "ipmi_ssif",
                      "xhci_pci",   "usbhid", "hid_generic", "usb_storage", "uas"};

void append(Names& to, const Names& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

Names modules_at_start() { return {"ext4", "vfat", "nls_ascii", "nls_cp437", "nls_iso8859-1", "efivarfs"}; }

Names storage_modules(const ModuleIndex& index) {
  Names out = kStorage;
  append(out, index.below("kernel/drivers/ata/"));
  return out;
}

Names network_modules(const ModuleIndex& index) {
  Names out = kNetwork;
  for (const auto& folder : kNetworkFolders)
    for (const auto& name : index.below(folder))
      if (!name.ends_with("_cs")) out.push_back(name);  // drivers of PC Cards in notebooks
  return out;
}

Names ram_system_modules(const ModuleIndex& index) {
  Names out = modules_at_start();
  append(out, storage_modules(index));
  append(out, network_modules(index));
  append(out, kOther);
  return out;
}

}  // namespace muster
