/** Texts inside the executable: the files of `deploy/`, as `crigc print` and `crigc install` write them, and licences. */
import cloudConfig from "../../deploy/cloud-config.yaml" with { type: "text" };
import config from "../../deploy/crigc.yaml" with { type: "text" };
import daemonset from "../../deploy/daemonset.yaml" with { type: "text" };
import openrc from "../../deploy/openrc" with { type: "text" };
import prometheusRules from "../../deploy/prometheus-rules.yaml" with { type: "text" };
import systemdUnit from "../../deploy/systemd-unit" with { type: "text" };
import { homepage } from "../../package.json" with { type: "json" };
import licensesPath from "./legal/licenses.txt" with { type: "file" };

export { homepage };

/** Of third parties, read on demand. */
export const licenses = Bun.file(licensesPath);

export const deployFiles = {
  "systemd-unit": systemdUnit,
  openrc,
  "cloud-config": cloudConfig,
  daemonset,
  "prometheus-rules": prometheusRules,
  config,
};
