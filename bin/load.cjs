"use strict"
/** Kept apart from the launcher because very old Nodes cannot even parse `import()`. */
module.exports = function load(url) {
  return import(url)
}
