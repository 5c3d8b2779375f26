// SIMULATED GPU: the lab's stand-in for the kernel module "nvidia". It has the files below /proc/driver/nvidia and
// the major number of the real one, and no hardware: its device files can be opened, and nothing else.
//
// It loads only in a guest of the lab: a hypervisor, QEMU as the vendor, and the lab's OEM string in SMBIOS,
// which contains the number and the model of the GPUs (base/standin.h). Everywhere else: ENODEV. Built for an
// image by DKMS, as the real one is.
#include <asm/cpufeature.h>
#include <linux/dmi.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#define PREFIX "muster-lab-gpus/1 "
#define NVIDIA_MAJOR 195
#define MOST_GPUS 16

static unsigned int gpus;
static const char *model;

static int show_version(struct seq_file *out, void *unused)
{
	seq_printf(out, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  SIMULATED GPU: the lab's stand-in\n",
		   STANDIN_VERSION);
	return 0;
}

static int show_information(struct seq_file *out, void *unused)
{
	const unsigned long gpu = (unsigned long)out->private;
	const char *machine = dmi_get_system_info(DMI_PRODUCT_UUID);

	seq_printf(out, "Model: \t\t %s (SIMULATED GPU)\n", model);
	seq_printf(out, "GPU UUID: \t GPU-SIMULATED-%.8s-%lu\n", machine ? machine : "", gpu);
	seq_puts(out, "Bus Type: \t PCIe\n");
	seq_printf(out, "Bus Location: \t 0000:%02lx:00.0\n", 0xe0 + gpu);
	seq_printf(out, "Device Minor: \t %lu\n", gpu);
	return 0;
}

static const struct file_operations device_files = { .owner = THIS_MODULE };

// The number of GPUs that the lab declared; 0 if this is not a guest of a lab.
static unsigned int find_standins(void)
{
	const struct dmi_device *found = NULL;
	unsigned int count = 0;

	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR) || !dmi_match(DMI_SYS_VENDOR, "QEMU"))
		return 0;
	while ((found = dmi_find_device(DMI_DEV_TYPE_OEM_STRING, NULL, found)) != NULL) {
		const char *text = found->name, *blank;

		if (!text || strncmp(text, PREFIX, strlen(PREFIX)) != 0)
			continue;
		text += strlen(PREFIX);
		blank = strchr(text, ' ');
		if (count || !blank || sscanf(text, "%u", &count) != 1 || count > MOST_GPUS)
			return 0;
		model = blank + 1;
	}
	return count;
}

static int __init standin_init(void)
{
	struct proc_dir_entry *folder, *list;
	unsigned long gpu;
	int failed;

	gpus = find_standins();
	if (!gpus)
		return -ENODEV;
	failed = register_chrdev(NVIDIA_MAJOR, "nvidia", &device_files);
	if (failed < 0)
		return failed;
	folder = proc_mkdir("driver/nvidia", NULL);
	list = folder ? proc_mkdir("gpus", folder) : NULL;
	if (!list)
		goto no_files;
	proc_create_single("version", 0444, folder, show_version);
	for (gpu = 0; gpu < gpus; gpu++) {
		char address[16];
		struct proc_dir_entry *one;

		snprintf(address, sizeof(address), "0000:%02lx:00.0", 0xe0 + gpu);
		one = proc_mkdir(address, list);
		if (!one)
			goto no_files;
		proc_create_single_data("information", 0444, one, show_information, (void *)gpu);
	}
	pr_info("NVRM: SIMULATED GPU: %u x %s, stood in for by the lab\n", gpus, model);
	return 0;

no_files:
	remove_proc_subtree("driver/nvidia", NULL);
	unregister_chrdev(NVIDIA_MAJOR, "nvidia");
	return -ENOMEM;
}

static void __exit standin_exit(void)
{
	remove_proc_subtree("driver/nvidia", NULL);
	unregister_chrdev(NVIDIA_MAJOR, "nvidia");
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
MODULE_DESCRIPTION("SIMULATED GPU: stand-in of muster's lab, no hardware");
