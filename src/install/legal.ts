/** What the executable carries of others' licences, and its bill of materials: paths inside it, read when they are asked for. */
import licensesPath from "./legal/licenses.txt" with { type: "file" };
import sbomPath from "./legal/sbom.txt" with { type: "file" };

/** `version --licenses`, `version --sbom` (CycloneDX JSON). */
export const legalPaths = { licenses: licensesPath, sbom: sbomPath } as const;
