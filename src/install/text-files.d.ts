/** Files of deploy/ whose names have no extension; the executable contains them as text. */

declare module "*/deploy/systemd-unit" {
  const text: string;
  export default text;
}

declare module "*/deploy/openrc" {
  const text: string;
  export default text;
}
