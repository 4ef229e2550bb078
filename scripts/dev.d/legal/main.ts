// Regenerates the licence texts after a dependency changed; --sbom prints the SBOM of a release instead

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { licencesText } from "./licences.ts";
import { bundledPackages } from "./packages.ts";
import { runtimeOf } from "./runtime.ts";
import { sbomText } from "./sbom.ts";

const top = join(import.meta.dir, "../../..");
const about = { packages: await bundledPackages(top), runtime: runtimeOf(top) };
if (process.argv.includes("--sbom")) process.stdout.write(sbomText(top, about));
else writeFileSync(join(top, "src/install/legal/licenses.txt"), licencesText(top, about));
