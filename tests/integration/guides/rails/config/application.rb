require "rails"
require "active_record/railtie"

class Shop < Rails::Application
  config.load_defaults 6.1
  config.eager_load = false
  config.active_record.schema_format = :sql
  config.active_record.dump_schema_after_migration = false
  config.secret_key_base = "of a test"
end
