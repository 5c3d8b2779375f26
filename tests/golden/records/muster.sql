PRAGMA application_id = 1299542900;
PRAGMA user_version = 7;
BEGIN TRANSACTION;
CREATE TABLE certificate (
  serial      TEXT PRIMARY KEY,
  node        TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  issued      INTEGER NOT NULL,
  revoked     INTEGER NOT NULL
, contested INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "certificate" VALUES('0a','gpu01','sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',210,1,0);
INSERT INTO "certificate" VALUES('0b','gpu02','sha256:0000000000000000000000000000000000000000000000000000000000000000',211,0,1);
CREATE TABLE event (
  seq  INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  run  INTEGER NOT NULL,
  node TEXT NOT NULL,
  kind TEXT NOT NULL,
  json TEXT NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,213,3,'gpu01','log','{"text":"a ''quoted'' line"}');
INSERT INTO "event" VALUES(2,214,0,'','start','{}');
CREATE TABLE history (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  name     TEXT NOT NULL,     -- of this line of events: another one whenever an older copy was put in its place
  start    TEXT NOT NULL,     -- of the controller's last start: another one each time; '' before the first
  commits  INTEGER NOT NULL,  -- transactions since the beginning
  restored INTEGER NOT NULL   -- when an older copy was found in its place, last; 0: never
) STRICT;
INSERT INTO "history" VALUES(1,'26b7f9023433bf58','aab2bf0afca2b90c',2,0);
CREATE TABLE journal (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  run     INTEGER REFERENCES run (id),  -- NULL: not of a run
  action  TEXT NOT NULL,
  node    TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  event   TEXT NOT NULL,
  time    INTEGER NOT NULL,
  data    TEXT NOT NULL
) STRICT;
INSERT INTO "journal" VALUES(1,NULL,'','',0,'start',217,'{}');
INSERT INTO "journal" VALUES(2,3,'gpu01/image','gpu01',2,'intent',218,'{"kind":"image"}');
INSERT INTO "journal" VALUES(3,3,'gpu01/image','gpu01',2,'step',219,'{"status":"applied","step":"ssh/harden"}');
INSERT INTO "journal" VALUES(4,3,'gpu01/image','gpu01',2,'succeeded',220,'{"message":"done","result":{"ratio":0.5}}');
CREATE TABLE node (
  name           TEXT PRIMARY KEY,
  state          TEXT NOT NULL,
  reason         TEXT NOT NULL,
  image_digest   TEXT NOT NULL,
  config_digest  TEXT NOT NULL,
  mode           TEXT NOT NULL,
  boot_id        TEXT NOT NULL,
  product_uuid   TEXT NOT NULL,
  system_serial  TEXT NOT NULL,
  last_seen      INTEGER NOT NULL,
  facts_time     INTEGER NOT NULL,
  facts          TEXT NOT NULL,
  accepted_run   INTEGER NOT NULL
, held_by TEXT NOT NULL DEFAULT '', disk_written TEXT NOT NULL DEFAULT '{}') STRICT;
INSERT INTO "node" VALUES('gpu01','quarantined','no boot','sha256:1111111111111111111111111111111111111111111111111111111111111111','sha256:2222222222222222222222222222222222222222222222222222222222222222','installed','5f3c','4c4c4544','A1',101,102,'{"boot":{"no_trial":"no EFI variables","running":"a","slots":{"a":{"address":"10.20.0.11/24","digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","image":"debian-12","stage":"written","trial":true}},"standing":"b"},"by_label":["LABEL=scratch /scratch"],"cpus":{"count":128,"model":"Xeon 8480C","sockets":2},"disks":[{"blank":true,"bus_speed":"16.0 GT/s x4","content":"GPT, 1 partition","content_hash":"sha256:8888888888888888888888888888888888888888888888888888888888888888","is_os_ancestor":true,"logical_block":4096,"model":"PM9A3","mounted":true,"muster_authority":"sha256:9999999999999999999999999999999999999999999999999999999999999999","muster_cluster":"gaggle","muster_node":"gpu07","name":"nvme0n1","partitions":[{"fs_label":"ESP","fs_type":"vfat","label":"esp","name":"nvme0n1p1","size_bytes":536870912,"start_bytes":1048576}],"pcie_address":"0000:41:00.0","read_only":true,"serial":"S1","signatures":["xfs label=DATA"],"size_bytes":1920383410176,"transport":"nvme","wwid":"eui.01"},{"blank":false,"bus_speed":"","content":"","content_hash":"","is_os_ancestor":false,"logical_block":0,"model":"","mounted":false,"muster_authority":"","muster_cluster":"","muster_node":"","name":"","partitions":[],"pcie_address":"","serial":"","signatures":[],"size_bytes":0,"transport":"","wwid":""}],"firmware":"EDK II 2022.11","gpus":[{"bus_speed":"32.0 GT/s x16","memory_bytes":150323855360,"model":"H200","pci":"0000:17:00.0","pci_path":"pci0000:16/1.0","serial":"165","simulated":true,"uuid":"GPU-1"}],"kernel":"6.1.0-25-amd64","machine_id":"0123456789abcdef","memory_bytes":2199023255552,"memory_usable_bytes":2164663517184,"nics":[{"address_kind":"usb","driver":"mlx5_core","link_up":true,"mac":"52:54:00:20:00:01","name":"eth0","pci":"0000:18:00.0","pci_path":"pci0000:16/1.1","speed_mbps":400000}],"os":"Debian GNU/Linux 12 (bookworm)","properties":{"CPU governor":"performance"},"share":{"cores":1.5,"cores_by":"cpuset","of_cores":128,"words":["1.5 of 128 cores (cpuset)"]},"storage_metadata":{"ceph":false,"moosefs":true},"system":{"product":"SYS-821GE","serial":"A1","uuid":"4c4c4544","vendor":"Supermicro"},"uefi":true}',3,'operator','{"":103,"b":104}');
INSERT INTO "node" VALUES('gpu02','unknown','','','','','','','',0,0,'',0,'','{}');
CREATE TABLE plan (
  digest        TEXT PRIMARY KEY,
  kind          TEXT NOT NULL,
  spec_revision INTEGER NOT NULL,
  time          INTEGER NOT NULL,
  json          TEXT NOT NULL
) STRICT;
INSERT INTO "plan" VALUES('sha256:7bba27cb4b59e803f720c2beecd950b3ad4cc48d9233c3a11a511888ef1e6068','reimage',5,203,'{"actions":[{"after":[{"action":"gpu02/netboot","hard":false},{"action":"gpu02/steps","hard":true}],"behind":0,"id":"gpu01/image","kind":"image","max_attempts":9,"node":"gpu01","params":{"disk_serial":"S1","disk_size_bytes":1920383410176},"phase":"image","repeatable":false,"timeout_ms":8000,"title":"write debian-12","when_failed":true},{"after":[],"id":"gpu02/steps","kind":"steps","max_attempts":2,"node":"gpu02","params":{"mode":"apply","steps":[{"id":"a/b","module":"file","params":{}}]},"phase":"","repeatable":true,"timeout_ms":600000,"title":""}],"barriers":[["gpu01/image"],[]],"cluster":"gaggle","config_digests":{"gpu01":"sha256:3333333333333333333333333333333333333333333333333333333333333333"},"destroys":[{"content":"GPT, 1 partition","content_hash":"sha256:2222222222222222222222222222222222222222222222222222222222222222","group":"os","kernel_name":"nvme0n1","model":"PM9A3","node":"gpu01","serial":"S1","size_bytes":1920383410176,"why":"image debian-12","wwid":"eui.01"},{"content":"","content_hash":"","every_disk":true,"group":"","kernel_name":"","model":"","node":"gpu02","serial":"","size_bytes":0,"why":"","wwid":""}],"follows":"run 2 of 0f","images":{"debian-12":"sha256:1111111111111111111111111111111111111111111111111111111111111111"},"kind":"reimage","left_out":["gpu04"],"left_out_rules":{"gpu04":"on-trial"},"limits":{"failure_budget":6,"netboot_ms":7000,"parallel_imaging":3,"parallel_netboot":4,"power_stagger_ms":5000},"nodes":["gpu01","gpu02"],"notes":["a note"],"profile":"h200","serving":["gpu02"],"simulated":true,"spec_revision":5,"unchanged":["gpu03"],"version":1}');
CREATE TABLE report (
  run      INTEGER PRIMARY KEY REFERENCES run (id),
  time     INTEGER NOT NULL,
  json     TEXT NOT NULL,  -- the signed text, byte for byte
  measured TEXT NOT NULL   -- {node: {"check|subject": {value, verdict}}}
) STRICT;
INSERT INTO "report" VALUES(3,215,'{"run": 3 }
','{"gpu01":[{"check":"dgemm/gflops","good":true,"like":"","subject":"/scratch","value":1.25}],"gpu02":[{"blame":["GPU 0000:17:00"],"check":"dgemm/gflops","degraded":true,"like":"","reason":"it is slow","subject":"/scratch","value":1.25},{"check":"dgemm/gflops","like":"","subject":"/scratch","value":1.25},{"check":"dgemm/gflops","like":"","subject":"/scratch","value":1.25}],"gpu03":[{"check":"dgemm/gflops","like":"","subject":"/scratch","value":1.25}]}');
CREATE TABLE rollout (
  id   INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,  -- of its last change
  text TEXT NOT NULL
) STRICT;
INSERT INTO "rollout" VALUES(3,216,'{"approval":{"by":"root","images":{"debian-12":{"built_from":"sha256:5555555555555555555555555555555555555555555555555555555555555555","digest":"sha256:4444444444444444444444444444444444444444444444444444444444444444"}},"rebuilt_images":true,"roles":["gpu","storage"],"spec_digest":"sha256:3333333333333333333333333333333333333333333333333333333333333333","spec_revision":5,"time":1700000000000},"before":{"gpu01":"sha256:7777777777777777777777777777777777777777777777777777777777777777"},"ended":1700000200000,"id":3,"left":{"gpu07":"on trial"},"night":17,"row":{"batch":{"canary":true,"images":{"gpu01":"sha256:2222222222222222222222222222222222222222222222222222222222222222"},"number":5,"run":6},"batches":4,"done":{"gpu06":16},"failed":{"gpu02":{"canary":true,"reason":"no boot","returned":false,"run":8},"gpu03":{"canary":false,"reason":"slow","returned":true,"run":9}},"id":3,"paused":true,"postponed":{"gpu04":{"cancelled":true,"night":11,"reason":"jobs","refused":false,"run":10,"times":12},"gpu05":{"cancelled":false,"night":14,"reason":"refused","refused":true,"run":13,"times":15}},"proven":{"sha256:2222222222222222222222222222222222222222222222222222222222222222":7},"stage":"stopped","stop":"budget","target":"sha256:1111111111111111111111111111111111111111111111111111111111111111"},"runs":[{"canary":true,"images":{"gpu01":"sha256:6666666666666666666666666666666666666666666666666666666666666666"},"number":18,"run":19}],"started":1700000100000,"why_paused":"by root","window_until":1700000300000}');
CREATE TABLE run (
  id          INTEGER PRIMARY KEY,
  plan_digest TEXT NOT NULL,
  state       TEXT NOT NULL,
  started     INTEGER NOT NULL,
  ended       INTEGER NOT NULL,
  approved_by TEXT NOT NULL
) STRICT;
INSERT INTO "run" VALUES(2,'sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','partial',204,205,'root');
INSERT INTO "run" VALUES(3,'sha256:7bba27cb4b59e803f720c2beecd950b3ad4cc48d9233c3a11a511888ef1e6068','done',206,207,'rollout 3/2, approved by root');
CREATE TABLE secret (
  name   TEXT PRIMARY KEY,
  time   INTEGER NOT NULL,
  sealed TEXT NOT NULL
) STRICT;
INSERT INTO "secret" VALUES('bmc',212,'c2VhbGVk');
CREATE TABLE spec (
  revision INTEGER PRIMARY KEY,
  time     INTEGER NOT NULL,
  text     TEXT NOT NULL,
  digest   TEXT NOT NULL,
  note     TEXT NOT NULL
) STRICT;
INSERT INTO "spec" VALUES(4,201,'cluster: gaggle
','sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','');
INSERT INTO "spec" VALUES(5,202,'cluster: ''gaggle'' # ä
','sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','a note');
CREATE TABLE token (
  digest      TEXT PRIMARY KEY,
  node        TEXT NOT NULL,
  purpose     TEXT NOT NULL,
  expires     INTEGER NOT NULL,
  public_key  TEXT NOT NULL,
  certificate TEXT NOT NULL
) STRICT;
INSERT INTO "token" VALUES('sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','gpu01','join',208,'key','certificate');
INSERT INTO "token" VALUES('sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee','gpu02','adopt',209,'','');
CREATE INDEX journal_by_run ON journal (run, seq);
CREATE INDEX event_by_node ON event (node, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',2);
INSERT INTO "sqlite_sequence" VALUES('journal',4);
COMMIT;
