// A trace of one node as the text of its file.

/** One image, used for an hour and again later, on a disk of 100 bytes. */
export const TRACE = [
  '{"apiVersion":"crigc/v1","kind":"Trace","node":"node-1","fromMs":0,"untilMs":21600000,"precisionMs":300000,"capacityBytes":100,"otherBytes":10}',
  '{"kind":"Image","image":"sha256:a","names":["r.example/a:1"],"sizeBytes":50,"layers":null}',
  '{"kind":"Image","image":"sha256:b","names":["r.example/b:1"],"sizeBytes":30,"layers":null}',
  '{"kind":"Use","image":"sha256:a","name":null,"fromMs":0,"untilMs":3600000}',
  '{"kind":"Use","image":"sha256:b","name":null,"fromMs":7200000,"untilMs":7200000}',
  '{"kind":"Use","image":"sha256:a","name":null,"fromMs":14400000,"untilMs":14400000}',
  "",
].join("\n");
