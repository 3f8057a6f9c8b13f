<?php

use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\DB;

return [
    'name' => 'shop',
    'env' => 'local',
    'debug' => true,
    'timezone' => 'UTC',
    'locale' => 'en',
    'fallback_locale' => 'en',
    'key' => 'base64:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    'cipher' => 'AES-256-CBC',
    'providers' => [
        Illuminate\Cache\CacheServiceProvider::class,
        Illuminate\Foundation\Providers\ConsoleSupportServiceProvider::class,
        Illuminate\Database\DatabaseServiceProvider::class,
        Illuminate\Filesystem\FilesystemServiceProvider::class,
        Illuminate\Queue\QueueServiceProvider::class,
    ],
    'aliases' => ['Artisan' => Artisan::class, 'DB' => DB::class],
];
