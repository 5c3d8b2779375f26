#!/bin/bash
# Real cloud-init, in a root that is thrown away: the first stage of a boot with a data source of its own. Sourced by try.sh,
# which says in $user_data what the provider gives the machine, and in $provider what its image has in cloud.cfg.d.
. "$SRC/tests/field/root.sh"
needs cloud-init unshare
seed=$root/var/lib/cloud/seed/nocloud
mkdir -p "$seed"
rm -rf "$root/var/lib/cloud/instance" "$root/var/lib/cloud/instances" "$root/var/lib/cloud/data"
printf 'instance-id: field-1\nlocal-hostname: %s\n' image-name > "$seed/meta-data"
printf '#cloud-config\n%s\n' "$user_data" > "$seed/user-data"
# The data source of the seed, and of the modules only those of this case: others grow disks and make keys.
printf 'datasource_list: [ NoCloud ]\n' > "$root/etc/cloud/cloud.cfg.d/10-field.cfg"
sed -i -e '/^cloud_init_modules:/,/^$/d' "$root/etc/cloud/cloud.cfg"
printf '\ncloud_init_modules:\n - seed_random\n - update_hostname\n - update_etc_hosts\n\n' >> "$root/etc/cloud/cloud.cfg"
printf '%s\n' "$provider" > "$root/etc/cloud/cloud.cfg.d/90-provider.cfg"
boot() {
  rm -rf "$root/run/cloud-init"
  in_root unshare --uts sh -c 'hostname gate01; cloud-init init --local; cloud-init init' > "$WORK/cloud-init.log" 2>&1
}
names='{"path":"/etc/hosts","content":"127.0.0.1 localhost\n10.20.0.31 gate01\n10.20.0.11 crane01\n"}'
has_names() { grep -q crane01 "$root/etc/hosts"; }
rewritten() { ! has_names; }
printf '127.0.0.1 localhost\n10.20.0.31 gate01\n10.20.0.11 crane01\n' > "$root/etc/hosts"
boot
expect "this cloud-init writes the file again" rewritten
expect "the step" agent apply file "$names" > /dev/null
boot
expect "the names are there after a boot" has_names
expect "and the step holds" agent check file "$names" > /dev/null
exit $wrong
