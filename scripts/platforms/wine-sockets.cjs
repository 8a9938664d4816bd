// Loaded before tests under Wine: Wine does not know how long a connection may be idle, which `fetch` asks for, and
// refuses to connect then.
require("node:net").Socket.prototype.setKeepAlive = function setKeepAlive() {
  return this;
};
