/** What an import of a `.proto` file with `type: "file"` gives: a path where it can be read, in the executable too. */
declare module "*.proto" {
  const path: string;
  export default path;
}
