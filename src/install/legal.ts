/** The licences inside the executable, read on demand: `version --licenses`. */
import { homepage } from "../../package.json" with { type: "json" };
import licensesPath from "./legal/licenses.txt" with { type: "file" };

export const licenses = Bun.file(licensesPath);

export { homepage };
