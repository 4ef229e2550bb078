/** The licences and the bill of materials inside the executable, read on demand. */
import { homepage } from "../../package.json" with { type: "json" };
import licensesPath from "./legal/licenses.txt" with { type: "file" };
import sbomPath from "./legal/sbom.txt" with { type: "file" };

/** `version --licenses`, `version --sbom` (CycloneDX JSON). */
export const legalFiles = {
  licenses: Bun.file(licensesPath),
  sbom: Bun.file(sbomPath),
} as const;

export { homepage };
