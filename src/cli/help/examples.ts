/** Examples of each command, for help and the manual page. */

type Example = readonly [line: string, what: string];

export const EXAMPLES: Readonly<Record<string, readonly Example[]>> = {
  run: [
    ["crigc run", "collect as the configuration says"],
    ["crigc run --dry-run", "log what it would remove"],
    ["crigc run --metrics-bind-address 127.0.0.1:9419", "serve metrics"],
  ],
  gc: [
    ["crigc gc --dry-run", "show what a pass would remove"],
    ["crigc gc --filter unused-for=30d", "remove images unused for 30 days"],
    ["crigc gc --all-unused --images", "remove every unused image"],
  ],
  plan: [
    ["crigc plan", "show the order of removal"],
    ["crigc plan --all-unused", "show every image that may go"],
    ["crigc plan --image-gc-high-threshold 70 --image-gc-low-threshold 60", "try thresholds"],
  ],
  rm: [
    ["crigc rm registry.example/app:1.2", "remove one image with its names"],
    ["crigc rm --dry-run 0123456789ab", "check an image by its ID"],
    ["crigc rm app:1.1 app:1.2", "remove two"],
  ],
  explain: [
    ["crigc explain registry.example/app:1.2", "show which rule keeps it"],
    ["crigc explain app:1.2", "the end of a name is enough"],
    ["crigc explain default/web", "show a container or a pod"],
  ],
  images: [
    ["crigc images --sort last-used", "list the least recently used first"],
    ["crigc images --filter reference=registry.example/**", "list one registry"],
    ["crigc images -q --filter untagged", "print IDs only"],
  ],
  df: [
    ["crigc df", "show what fills the disk"],
    ["crigc df --filter reference=registry.example/**", "show the images of one registry"],
    ["crigc df -o json", "print every figure"],
  ],
  status: [
    ["crigc status", "show problems, disks and passes"],
    ["watch crigc status", "follow them"],
    ["crigc status -o json", "print every setting, too"],
  ],
  history: [
    ["crigc history --since 24h", "show the last day"],
    ["crigc history --image app:1.2", "show what became of an image"],
    ["crigc history -n 20 --kind container", "show the last 20 containers"],
  ],
  hold: [
    ["crigc hold 2h --reason upgrade", "pause for two hours"],
    ["crigc hold 1d", "pause for a day"],
    ["crigc release", "resume at once"],
  ],
  "keep baseline": [
    ["crigc keep baseline", "keep today's images"],
    ["crigc keep baseline --once", "on the first boot only"],
    ["crigc keep baseline --replace", "keep those of now instead"],
  ],
  "keep test": [
    ["crigc keep test registry.example/**", "show what a pattern would keep"],
    ["crigc keep test sha256:0123456789ab", "keep by ID or digest"],
    ["crigc keep test app", "a name without a tag has every tag"],
  ],
  config: [
    ["crigc config", "show each value with its source"],
    ["crigc config --check crigc.yaml", "check a file"],
    ["crigc config -o json", "print it for programs"],
  ],
  install: [
    ["crigc install --start", "install and start the service"],
    ["crigc install --dry-run", "show what it would write"],
    ["crigc install --root /mnt/image", "install into a node image"],
  ],
};
