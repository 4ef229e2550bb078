/** The files of `deploy/`, as `crigc print` writes them and `crigc install` installs them. */
import cloudConfig from "../../deploy/cloud-config.yaml" with { type: "text" };
import config from "../../deploy/crigc.yaml" with { type: "text" };
import daemonset from "../../deploy/daemonset.yaml" with { type: "text" };
import openrc from "../../deploy/openrc" with { type: "text" };
import prometheusRules from "../../deploy/prometheus-rules.yaml" with { type: "text" };
import systemdUnit from "../../deploy/systemd-unit" with { type: "text" };

export const deployFiles = {
  "systemd-unit": systemdUnit,
  openrc,
  "cloud-config": cloudConfig,
  daemonset,
  "prometheus-rules": prometheusRules,
  config,
};
